"""The corpus as files, for engines that are not Python."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from irexec.api import save_model
from irexec.bounds import Interval, arithmetic
from irexec.conformance.running import ConformOptions, case_bounds, cases, chosen, reference_run
from irexec.display import Content, Text
from irexec.errors import InputError
from irexec.io.files import new_file
from irexec.messages import counted, silent
from irexec.records import Report
from irexec.testing import Case

_README = """# Cases of irexec conform

`index.json` lists the cases. Each has a folder with

- `model.xml`, `model.bin`: one operation, OpenVINO IR of version 11;
- `input_0.npy`, ...: the inputs, in the order of the model's Parameters;
- `expected_0.npy`, ...: the exact result of each output, rounded to its type, in the order of the Results;
- `low_0.npy`, `high_0.npy`, ...: the bounds of an output that has some, as f64 or as integers.

Read a model, run it with its inputs, and compare each output that has bounds:

1. The shape is that of `expected`, or the output is wrong.
2. Where `low` and `high` are NaN, the element must be NaN.
3. Where `low` is -inf and `high` is inf, anything is right, NaN too.
4. Elsewhere the element must not be NaN, and `low <= element <= high`.

An element that breaks a rule is one that no correct implementation of the arithmetic in `index.json` gives. An output
without bounds may be compared with `expected` by a tolerance; a difference is not an error by itself. A case that an
engine does not run is not an error either.

Types that NumPy lacks, such as bf16, are stored as f32 that have been rounded to the type; types of less than eight
bits are stored in i8 or u8. Of several indices that are right for equal elements `low` and `high` are the smallest and
the largest that any implementation gives.
"""


@dataclass(frozen=True)
class Corpus(Report):
    """Cases that were written.

    Attributes:
        folder: with index.json, README.md and a folder for each case.
        cases: number of cases.
        bounded: number of outputs that have bounds.
        outputs: number of outputs.
    """

    folder: str
    cases: int
    bounded: int
    outputs: int

    def sections(self) -> list[Content]:
        """One line."""
        outputs = f"bounds for {self.bounded} of {counted(self.outputs, 'output')}"
        return [Text(f"{self.folder}: {counted(self.cases, 'case')}, {outputs}", "title")]


def build_corpus(
    folder: str | Path, options: ConformOptions | None = None, advance: Callable[[float], object] = silent
) -> Corpus:
    """Write the cases as files: model, inputs, expected results and bounds.

    Args:
        folder: to write; it must be absent or empty.
        options: the choice of cases, and the arithmetic of the bounds, f32 unless given.
        advance: called with the share of the work that is done.

    Raises:
        InputError: the folder has files, or a pattern matches no operation.
        ModelError: a file cannot be written.
    """
    options, target = options or ConformOptions(), Path(folder)
    stated = arithmetic(options.arithmetic or "f32")
    pairs = chosen(options.ops)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise InputError(f"{target} is not an empty folder")
    index: list[dict[str, Any]] = []
    for row in cases(pairs, options.seed, options.cases):
        expected = reference_run(row)
        if expected is not None:
            index.append(_written(row, target, expected, case_bounds(row, stated)))
        advance(1 / (len(pairs) * options.cases))
    target.mkdir(parents=True, exist_ok=True)
    _write(target / "README.md", _README.encode())
    document = {"schema": 1, "arithmetic": stated.name, "seed": options.seed, "cases": index}
    _write(target / "index.json", f"{json.dumps(document, indent=1)}\n".encode())
    outputs = [one for case in index for one in case["outputs"]]
    return Corpus(str(target), len(index), sum(one["bounded"] for one in outputs), len(outputs))


def _written(row: Case, target: Path, made: Any, bounds: Sequence[object]) -> dict[str, Any]:
    model, fed, expected = made
    name = f"{row.type}-{int(row.since)}-{row.name}"
    folder = target / name
    folder.mkdir(parents=True, exist_ok=True)
    save_model(model, folder / "model.xml")
    for i, array in enumerate(fed):
        _save(folder / f"input_{i}.npy", array)
    outputs = []
    for i, (array, bound) in enumerate(zip(expected, bounds, strict=True)):
        _save(folder / f"expected_{i}.npy", array)
        is_bounded = isinstance(bound, Interval) and array.dtype.kind != "O"
        if isinstance(bound, Interval) and is_bounded:
            _save(folder / f"low_{i}.npy", bound.low)
            _save(folder / f"high_{i}.npy", bound.high)
        outputs.append({"bounded": is_bounded, "reason": getattr(bound, "reason", "")})
    elements = [x.element.name for x in row.inputs]
    return {
        "name": name, "type": row.type, "since": int(row.since), "case": row.name, "elements": elements,
        "outputs": outputs,
    }  # fmt: skip


def _save(path: Path, array: np.ndarray) -> None:
    with new_file(path, flushes=False) as file:
        # Text has no type of its own in a .npy that needs no pickle.
        np.save(file, array.astype(np.str_) if array.dtype.kind == "O" else array, allow_pickle=False)


def _write(path: Path, content: bytes) -> None:
    with new_file(path) as file:
        file.write(content)
