"""The description of a job for each of its processes: model, inputs and form of the output."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from irexec.errors import InputError
from irexec.io.onnx_bytes import is_onnx_file
from irexec.ir.dims import shape_text
from irexec.tools.batch.predictor import PredictorOptions
from irexec.tools.images.images import ImageOptions

Format = Literal["npz", "npy", "parquet", "jsonl", "csv"]
FORMATS: tuple[Format, ...] = ("npz", "npy", "parquet", "jsonl", "csv")
_CHUNK = 16 << 20


@dataclass(frozen=True, kw_only=True)
class BatchJob:
    """A description that is the same for every process of a job, and each time the job is resumed.

    Attributes:
        model: the path of the .xml or .onnx.
        predictor: how it is read and run.
        image: how images become inputs.
        batch_size: items of a run, unless the model fixes the number.
        column: the column of tables with the items.
        form: form of the output.
        topk: number of classes that replace the values of each result, along ``class_axis``.
        softmax: whether the scores of these classes are softmax of the values.
        labels: the names of the classes, if any.
    """

    model: str
    predictor: PredictorOptions = field(default_factory=PredictorOptions)
    image: ImageOptions = field(default_factory=ImageOptions)
    batch_size: int | None = None
    column: str | None = None
    form: Format = "npz"
    topk: int | None = None
    class_axis: int | None = None
    labels: tuple[str, ...] | None = None
    softmax: bool = False

    def described(self) -> dict[str, str]:
        """Texts of all options that determine the output; they are compared when the job is resumed."""
        options = asdict(self.predictor) | {
            "image": asdict(self.image),
            "batch_size": self.batch_size,
            "column": self.column,
        }
        # These options do not change the results.
        for name in ("max_memory", "mmap", "threads", "bin", "shapes"):
            options.pop(name, None)
        options |= {
            "format": self.form,
            "topk": self.topk,
            "class_axis": self.class_axis,
            "softmax": self.softmax,
            "labels": _hash_of(self.labels),
        }
        options["shapes"] = {str(name): shape_text(shape) for name, shape in (self.predictor.shapes or {}).items()}
        return {name: json.dumps(value, sort_keys=True, default=str) for name, value in options.items()}


def _hash_of(labels: tuple[str, ...] | None) -> str | None:
    return None if labels is None else hashlib.sha256("\n".join(labels).encode()).hexdigest()


def model_hash(path: str, bin: str | None) -> str:
    """SHA-256 of the files of a model.

    Raises:
        InputError: a file cannot be read.
    """
    found = hashlib.sha256()
    weights = Path(bin) if bin else Path(path).with_suffix(".bin")
    for file in [Path(path), *([weights] if weights.is_file() and not is_onnx_file(path) else [])]:
        try:
            with open(file, "rb") as opened:
                while chunk := opened.read(_CHUNK):
                    found.update(chunk)
        except OSError as error:
            raise InputError(f"{file}: cannot be read: {error.strerror or error}") from None
    return found.hexdigest()


def difference(before: Mapping[str, str], now: Mapping[str, str]) -> str:
    """Differences between the texts of two jobs; "" without any."""
    names = [name for name in now if before.get(name) != now[name]]
    return "; ".join(f"{name} was {before.get(name)}, and is {now[name]}" for name in names)


def plain(value: Any) -> Any:
    """An array or value for JSON: NaN is null, infinities are texts."""
    if isinstance(value, list):
        return [plain(each) for each in value]
    if isinstance(value, float) and not abs(value) < float("inf"):
        return None if value != value else "inf" if value > 0 else "-inf"
    return value
