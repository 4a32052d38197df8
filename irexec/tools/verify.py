"""Verification of a model: the model and a reference of it run on the same random inputs, and the results are compared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from irexec.analysis.model import Model, find_port
from irexec.errors import ConversionError, InputError, IrexecError, OpError
from irexec.ir.dims import PartialShape, Size, high, low, meet_shapes, shape_text
from irexec.records import Record
from irexec.runtime.compiled_model import CompiledModel
from irexec.tools.arrays.agreement import Agreement, Tolerance, agreement_of
from irexec.tools.compare import CompareOptions
from irexec.tools.compare.comparison import Known
from irexec.tools.compare.int8 import explain
from irexec.tools.engines.runtimes import open_runtime
from irexec.tools.run.input_sources import random_array

# Minimum, maximum and divisor of the sizes of dynamic dimensions, of axis 0 and of the others, tried in this order until the
# reference can run the model: many models need multiples of their total stride, or sizes that are at least a kernel's.
_Range = tuple[int, int, int]
_RANGES: tuple[tuple[_Range, _Range], ...] = (
    ((2, 4, 1), (32, 64, 32)), ((2, 9, 1), (2, 9, 1)), ((1, 1, 1), (224, 224, 224)), ((1, 1, 1), (1, 1, 1)),
)  # fmt: skip


class Reference(Protocol):
    """What a model is compared with.

    Attributes:
        name: what messages call it.
        shapes: of the inputs by name; sizes with the same symbol are equal.
    """

    @property
    def name(self) -> str: ...

    @property
    def shapes(self) -> Mapping[str, PartialShape]: ...

    def __call__(self, inputs: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
        """The outputs by name; raises ConversionError if it cannot run with these inputs."""


@dataclass(frozen=True)
class Verification(Record):
    """The outcome.

    Attributes:
        against: the name of the reference.
        shapes: of the random inputs, by name.
        agreements: one for each output.
        known: a reason for which they differ, where there is one; see irexec.tools.compare.int8.
    """

    against: str
    shapes: dict[str, tuple[int, ...]]
    agreements: list[Agreement]
    known: Known | None = None

    @property
    def agrees(self) -> bool:
        return all(agreement.agrees for agreement in self.agreements)


def verify(
    model: Model,
    reference: Reference,
    shapes: Mapping[str, PartialShape] | None = None,
    *,
    seed: int = 0,
    rtol: float,
    atol: float,
) -> Verification:
    """Run both on random inputs and compare the results.

    Args:
        model: is not changed; it may have dynamic dimensions.
        reference: has outputs of the same names.
        shapes: of inputs by name; dynamic dimensions that are not given get random sizes.
        seed: of sizes and values.
        rtol, atol: the tolerances of the comparison.

    Raises:
        InputError: there is no such input, a shape does not fit it, or its rank is not known.
        ConversionError: the reference cannot run with any of the sizes that were tried.
        NodeError: the model cannot run with inputs with which the reference can.
    """
    partial = _partial_shapes(model, reference, shapes or {})
    failure: ConversionError | None = None
    for chosen in _static_shapes(partial, reference, seed):
        inputs = {
            port.name: random_array(replace(port, shape=chosen[port.name]), seed + i)
            for i, port in enumerate(model.inputs)
        }
        try:
            expected = reference(inputs)
        except ConversionError as error:
            failure = failure or error
            continue
        results = CompiledModel(model)(inputs)
        agreements = [
            agreement_of(name, results[name], array, Tolerance(rtol=rtol, atol=atol))
            for name, array in expected.items()
        ]
        agrees = all(one.agrees for one in agreements)
        return Verification(reference.name, chosen, agreements, None if agrees else _known(model, reference, inputs))
    raise failure or ConversionError("the reference was not run")


def _known(model: Model, reference: Reference, inputs: Mapping[str, np.ndarray]) -> Known | None:
    """Of a model with products of bytes in ONNX Runtime, whose product is exact."""
    if reference.name != "onnxruntime":
        return None
    try:
        with open_runtime("onnxruntime", model) as runtime:
            return explain(model, runtime, inputs, CompareOptions())
    except IrexecError:
        # The verdict on the results stands without it.
        return None


def check_shapes(model: Model, shapes: Mapping[str, PartialShape]) -> dict[str, PartialShape]:
    """The shapes given, together with what the model declares, by the names of its inputs.

    Raises:
        InputError: there is no such input, or a shape does not fit it.
    """
    found: dict[str, PartialShape] = {}
    for name, shape in shapes.items():
        port = find_port(model.inputs, name)
        try:
            found[port.name] = meet_shapes(port.shape, shape)
        except OpError as error:
            raise InputError(f"shape {shape_text(shape)} does not fit input {port}: {error}") from None
    return found


def _partial_shapes(
    model: Model, reference: Reference, shapes: Mapping[str, PartialShape]
) -> dict[str, tuple[Size, ...]]:
    """What is known of each input's shape from the model, the shapes given and, as far as it agrees, the reference."""
    fitting = check_shapes(model, shapes)
    found: dict[str, tuple[Size, ...]] = {}
    for port in model.inputs:
        shape = fitting.get(port.name, port.shape)
        shape = reference.shapes.get(port.name) if shape is None else shape
        if shape is None:
            raise InputError(f"the rank of input {port.name!r} is not known: give its shape with --verify-shape")
        found[port.name] = shape
    return found


def _static_shapes(
    partial: Mapping[str, tuple[Size, ...]], reference: Reference, seed: int
) -> Iterator[dict[str, tuple[int, ...]]]:
    """Shapes to try: with random sizes, of which those with the same symbol in the reference are equal."""
    symbols = {name: _symbols(shape, reference.shapes.get(name)) for name, shape in partial.items()}
    pairs = [pair for name, shape in partial.items() for pair in zip(symbols[name], shape, strict=True)]
    bound = {symbol: size for symbol, size in pairs if symbol is not None and isinstance(size, int)}
    is_static = all(isinstance(size, int) or symbol in bound for symbol, size in pairs)
    for first, others in _RANGES[:1] if is_static else _RANGES:
        rng, drawn = np.random.default_rng(seed), dict(bound)
        yield {
            name: tuple(
                _static(size, symbol, others if axis else first, rng, drawn)
                for axis, (size, symbol) in enumerate(zip(shape, symbols[name], strict=True))
            )
            for name, shape in partial.items()
        }


def _symbols(shape: tuple[Size, ...], declared: PartialShape) -> list[str | None]:
    """The symbol of each size in the reference, None if it has none there."""
    if declared is None or len(declared) != len(shape):
        return [None] * len(shape)
    return [None if isinstance(size, int) else size.name for size in declared]


def _static(size: Size, symbol: str | None, sizes: _Range, rng: np.random.Generator, drawn: dict[str, int]) -> int:
    if isinstance(size, int):
        return size
    if symbol is not None and symbol in drawn:
        return drawn[symbol]
    minimum, maximum, divisor = sizes
    value = max(low(size), int(rng.integers(minimum // divisor, maximum // divisor + 1)) * divisor)
    top = high(size)
    value = value if top is None else min(value, top)
    if symbol is not None:
        drawn[symbol] = value
    return value
