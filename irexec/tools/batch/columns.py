"""A model on batches of a table's columns, as pipelines of Ray Data and Spark have them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from irexec.analysis.model import expected
from irexec.compile.memory_limit import MemoryLimit
from irexec.errors import InputError
from irexec.ir.order import grouped
from irexec.tools.batch.items import ItemReader
from irexec.tools.batch.predictor import Predictor, PredictorOptions, stacked
from irexec.tools.images import ImageOptions

Item = dict[str, np.ndarray]


class ColumnPredictor:
    """A model that takes columns and adds a column for each result. A pickled predictor loads the model again.

    Ray Data makes one in each actor:
    ``dataset.map_batches(irexec.ray.Predictor, fn_constructor_args=("model.xml",), concurrency=4, batch_size=8)``.

    Args:
        model: the path of an .xml or .onnx.
        options: how it is read and run.
        column: the column of the only input. Without it, columns have the names of the inputs.
        image: how images become inputs. With it, a value of ``column`` is an image: the bytes of a file, as produced by
            ``read_binary_files``, or pixels of uint8, [height, width] or [height, width, channels], as produced by
            ``read_images``. Without it, bytes are still an image, and arrays are inputs without conversion.
        keep: whether the columns of the inputs stay, too.

    Raises:
        ModelError, NodeError, UnsupportedError, InputError: as for compile_model.
    """

    def __init__(
        self, model: str | Path, options: PredictorOptions | None = None, *, column: str | None = None,
        image: ImageOptions | None = None, keep: bool = False,
    ) -> None:  # fmt: skip
        self._made = partial(type(self), model, options, column=column, image=image, keep=keep)
        self._predictor = Predictor(model, options).load()
        self._reader = ItemReader(
            self._predictor, image or ImageOptions(), None, MemoryLimit(self._predictor.options.max_memory)
        )
        self._column, self._are_images, self._keep = column, image is not None, keep

    def __repr__(self) -> str:
        return f"<ColumnPredictor {self._predictor.path}>"

    def __reduce__(self) -> tuple[Callable[[], ColumnPredictor], tuple[()]]:
        return self._made, ()

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        """The batch with a column for each result: an array whose axis 0 counts rows, of objects for different shapes.

        Args:
            batch: arrays by the names of columns, or a DataFrame of pandas. Rows of different shapes run in separate
                batches.

        Raises:
            InputError: a column does not exist, or does not fit the model.
            ModelError: an image cannot be read.
            NodeError: the model cannot run them.
        """
        used = self._used(batch)
        columns = [np.asarray(batch[name]) for name in used]
        rows = [
            self._item(f"row {i}", dict(zip(used, (values[i] for values in columns), strict=True)))
            for i in range(len(columns[0]))
        ]
        return {name: values for name, values in batch.items() if self._keep or name not in used} | self._results(rows)

    def _used(self, batch: Mapping[str, Any]) -> list[str]:
        wanted = [port.name for port in self._predictor.inputs] if self._column is None else [self._column]
        missing = [name for name in wanted if name not in batch]
        if missing:
            ports = expected(self._predictor.inputs)
            hint = "" if self._column else f"; the model has {ports}, and column= names one for its only input"
            raise InputError(f"the batch has no column {', '.join(map(repr, missing))}, but {', '.join(batch)}{hint}")
        return wanted

    def _item(self, row: str, values: Mapping[str, Any]) -> Item:
        if self._column is None:
            return {port.name: self._reader.array(row, port, values[port.name]) for port in self._predictor.inputs}
        value = values[self._column]
        if self._are_images and isinstance(value, np.ndarray):
            return self._reader.from_image(row, value)
        return self._reader.from_value(row, value)

    def _results(self, rows: list[Item]) -> dict[str, np.ndarray]:
        kinds = (tuple((name, array.shape, array.dtype.str) for name, array in row.items()) for row in rows)
        groups = grouped((kind, i) for i, kind in enumerate(kinds))
        found: list[Item] = [{}] * len(rows)
        for positions in groups.values():
            for i, result in zip(positions, self._predictor.predict([rows[i] for i in positions]), strict=True):
                found[i] = result
        return {name: stacked([result[name] for result in found]) for name in self._predictor.results}
