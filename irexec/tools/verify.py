"""Verification of a conversion: the model and its .onnx file run on the same random inputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from irexec.analysis.model import Model, find_port
from irexec.analysis.open_sizes import frozen_axes, what_hides
from irexec.analysis.shape_inference import infer_shapes
from irexec.display import Content
from irexec.errors import EngineError, InputError, IrexecError, OpError
from irexec.ir.dims import PartialShape, Size, high, low, meet_shapes, shape_text
from irexec.ir.facts import Fact
from irexec.ir.graph import Value
from irexec.ir.order import topological
from irexec.messages import counted
from irexec.records import Record
from irexec.runtime.compiled_model import CompiledModel
from irexec.tools.arrays.agreement import Agreement, Tolerance, agreement_of, agreements_table
from irexec.tools.compare.blame import products_of_bytes, saturated
from irexec.tools.compare.comparison import Known
from irexec.tools.compare.layers import detection_layers, layer
from irexec.tools.compare.rows import as_rows
from irexec.tools.engines.runtimes import open_runtime
from irexec.tools.run.input_sources import random_array

# Minimum, maximum and divisor of the sizes of dynamic dimensions, of axis 0 and of the others, tried in this order
# until the runtime can run the file: many models need multiples of their total stride, or sizes that are at least a
# kernel's.
_Range = tuple[int, int, int]
_RANGES: tuple[tuple[_Range, _Range], ...] = (
    ((2, 4, 1), (32, 64, 32)), ((2, 9, 1), (2, 9, 1)), ((1, 1, 1), (224, 224, 224)), ((1, 1, 1), (1, 1, 1)),
)  # fmt: skip

_AS_MUCH = 12.0
"""Decibels between two differences that rounding makes in the same layers, in other orders of sums: a factor of 4."""


@dataclass(frozen=True)
class Verification(Record):
    """The outcome.

    Attributes:
        against: the name of the runtime that ran the .onnx file.
        shapes: of the random inputs, by name.
        agreements: one for each output.
        known: a reason for which they differ, where there is one; see irexec.tools.compare.blame.
        frozen: sentences about open axes with one possible size, and about inputs of size 1 that hide faults.
    """

    against: str
    shapes: dict[str, tuple[int, ...]]
    agreements: list[Agreement]
    known: Known | None = None
    frozen: tuple[str, ...] = ()

    @property
    def agrees(self) -> bool:
        """True if every output agrees."""
        return all(agreement.agrees for agreement in self.agreements)

    def sections(self) -> list[Content]:
        """The outputs, the known reason, and the inputs."""
        inputs = " ".join(f"{name}{shape_text(shape)}" for name, shape in self.shapes.items())
        return [
            agreements_table(self.agreements, "output", f"against {self.against}"),
            None if self.known is None else f"known: {self.known}",
            f"verified with {inputs}" if inputs else "verified without inputs",
            *self.frozen,
        ]


def verify(
    model: Model,
    shapes: Mapping[str, PartialShape] | None = None,
    declared: Mapping[str, PartialShape] | None = None,
    *,
    runtime: str,
    seed: int,
    rtol: float,
    atol: float,
) -> Verification:
    """Run a model and the .onnx file that it was converted from on the same random inputs, and compare the results.

    Args:
        model: a model, which is not changed and may have dynamic dimensions.
        shapes: of inputs by name; dynamic dimensions that are not given get random sizes.
        declared: of the inputs of the file by name; sizes with the same symbol are equal.
        runtime: the runtime of the file: "onnxruntime" in a process of its own, or "onnx".
        seed: of sizes and values.
        rtol, atol: the tolerances of the comparison.

    Raises:
        InputError: the input does not exist, a shape does not fit it, or its rank is not known.
        EngineError: the runtime cannot run with any of the sizes that were tried, or its process ended.
        NodeError: the model cannot run with inputs with which the runtime can.
    """
    choices = sized_inputs(model, shapes or {}, seed, declared)
    results = dict.fromkeys(value for node in model.results for value in node.inputs if value is not None)
    failure: EngineError | None = None
    with open_runtime(runtime, model) as reference:
        values = [value for value in results if reference.gives(value)]
        for inputs in choices:
            try:
                expected = reference.run(inputs, values)
            except EngineError as error:
                failure = failure or error
                continue
            found = CompiledModel(model)(inputs)
            tolerance, detections = Tolerance(rtol=rtol, atol=atol), detection_layers(model)
            agreements: list[Agreement] = []
            for value, array in zip(values, expected, strict=True):
                one = agreement_of(value.name, found[value.name], array, tolerance)
                is_of_rows = value.node in detections
                agreements.append(as_rows(one, array, found[value.name], tolerance) if is_of_rows else one)
            named, missing = {name for value in results for name in value.names}, "the model has no output of this name"
            agreements += [Agreement(name, False, None, missing) for name in reference.outputs if name not in named]
            differing = {value: one for value, one in zip(values, agreements, strict=False) if not one.agrees}
            known = None
            if differing:
                known = _amplified(model, inputs, found, differing, tolerance) or _known(model, runtime)
            chosen = {name: array.shape for name, array in inputs.items()}
            return Verification(runtime, chosen, agreements, known, tuple(_of_sizes(model, chosen)))
    if failure is None:
        raise AssertionError("there are sizes to try")
    if reasons := [f"; {one}" for one in frozen_axes(model)]:
        raise EngineError(f"{failure}{''.join(reasons)}", engine=failure.engine) from failure
    raise failure


def _of_sizes(model: Model, shapes: Mapping[str, tuple[int, ...]]) -> Iterator[str]:
    """Sentences about sizes that the inputs have, although the model leaves them open."""
    yield from map(str, frozen_axes(model, shapes))
    given = {port.node: Fact(port.element, shapes[port.name]) for port in model.inputs}
    if hidden := what_hides(model, shapes, infer_shapes(model, given, tolerant=True).facts):
        yield f"the inputs have {hidden}"


def _known(model: Model, runtime: str) -> Known | None:
    """The first product of bytes that ONNX Runtime may saturate on this processor."""
    products = products_of_bytes(model, topological(model)[0]) if runtime == "onnxruntime" else ()
    return next(map(saturated, products), None)


def _amplified(
    model: Model, inputs: Mapping[str, np.ndarray], found: Mapping[str, np.ndarray],
    differing: Mapping[Value, Agreement], tolerance: Tolerance,
) -> Known | None:  # fmt: skip
    """Rounding as the reason, if irexec's own kernels differ from each other as much as from the runtime.

    A value between two levels of a FakeQuantize falls on either side by its rounding, and the layers after it multiply
    the difference. The kernels of NumPy alone add in other orders, as another runtime does. Rounding is the reason only
    if it explains each output that differs.
    """
    try:
        others = CompiledModel(model, native=False, optimize=False)(inputs)
    except IrexecError:
        # The verdict on the results stands without it.
        return None
    count = 0
    for value, one in differing.items():
        own = agreement_of(value.name, found[value.name], others[value.name], tolerance)
        if own.agrees or one.snr is None or own.snr is None or not one.snr >= own.snr - _AS_MUCH:
            return None
        count += own.differing
    text = f"rounding: kernels of irexec that add in another order differ by as much, in {counted(count, 'value')}"
    return Known("", layer(next(iter(differing))), text, "")


def sized_inputs(
    model: Model, shapes: Mapping[str, PartialShape], seed: int, declared: Mapping[str, PartialShape] | None = None
) -> Iterator[dict[str, np.ndarray]]:
    """Random inputs by name, with one choice of the dynamic sizes after the other; arguments are those of ``verify``.

    Raises:
        InputError: the input does not exist, a shape does not fit it, or its rank is not known.
    """
    partial, ports = _partial_shapes(model, declared or {}, shapes), list(enumerate(model.inputs))
    return (
        {port.name: random_array(replace(port, shape=chosen[port.name]), seed + i) for i, port in ports}
        for chosen in _static_shapes(partial, declared or {}, seed)
    )


def check_shapes(model: Model, shapes: Mapping[str, PartialShape]) -> dict[str, PartialShape]:
    """The shapes given, together with what the model declares, by the names of its inputs.

    Raises:
        InputError: the input does not exist, or a shape does not fit it.
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
    model: Model, declared: Mapping[str, PartialShape], shapes: Mapping[str, PartialShape]
) -> dict[str, tuple[Size, ...]]:
    """The known shape of each input: from the model, the given shapes and the .onnx file."""
    fitting = check_shapes(model, shapes)
    found: dict[str, tuple[Size, ...]] = {}
    for port in model.inputs:
        shape = fitting.get(port.name, port.shape)
        shape = declared.get(port.name) if shape is None else shape
        if shape is None:
            raise InputError(f"the rank of input {port.name!r} is not known: give its shape with --verify-shape")
        found[port.name] = shape
    return found


def _static_shapes(
    partial: Mapping[str, tuple[Size, ...]], declared: Mapping[str, PartialShape], seed: int
) -> Iterator[dict[str, tuple[int, ...]]]:
    """Shapes to try: with random sizes, of which those with the same symbol in the .onnx file are equal."""
    symbols = {name: _symbols(shape, declared.get(name)) for name, shape in partial.items()}
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
    """The symbol of each size in the .onnx file, None if it has none there."""
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
