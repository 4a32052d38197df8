"""Compute products of quantised tensors in integers.

    FakeQuantize(x) -> [MaxPool, Reshape, Transpose ...] -> Convolution, MatMul    with weights of small integers

becomes Quantize(x), whose result is a tensor of levels, the same operations on levels, and a product of integers. What
else reads the FakeQuantize reads the values of the levels. A FakeQuantize after a product becomes its end.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from irexec.backend.compressed import CompressedSource
from irexec.backend.constants import ConstantSource
from irexec.backend.fake_quantize import levels_of
from irexec.backend.registry import has_library
from irexec.compile.graph import CompileGraph, CompileValue, Operation
from irexec.compile.levels import ADD_LEVELS, ATTENTION, DEQUANTIZE, PRODUCTS, QUANTIZE, THROUGH, grid_attributes
from irexec.compile.rewriting import Rewriting, created
from irexec.compile.select import is_static
from irexec.dtypes.elements import F32, I8, unpack
from irexec.reference.grids import MOST, Grid
from irexec.reference.integers import nearest_levels, zero_level
from irexec.reference.windows import window_populations
from irexec.schema.registry import resolve

DEEPEST = (1 << 31) // (255 * 128 * 2)
"""Products of a sum that 32 bits hold, with what takes the zero of the levels off."""


def compute_in_integers(graph: CompileGraph, rewriting: Rewriting) -> None:
    """Rewrite each product that can be computed in integers, with the C library."""
    if not may_use_integers(graph, rewriting):
        return
    levels = _Levels(graph, rewriting)
    levels.remove_repeated()
    for operation in graph.order():
        if operation.type in PRODUCTS and is_static(operation):
            reason = levels.rewrite(operation)
            if reason is not None:
                rewriting.refused(operation, reason)
    levels.rewrite_readers()


def attend_in_integers(graph: CompileGraph, rewriting: Rewriting) -> None:
    """Let attention read the levels of queries and keys that are quantised: its scores are sums of integers."""
    if not may_use_integers(graph, rewriting):
        return
    levels = _Levels(graph, rewriting)
    for operation in graph.order():
        if operation.type == "ScaledDotProductAttention" and is_static(operation):
            levels.rewrite_attention(operation)
    levels.rewrite_readers()


def may_use_integers(graph: CompileGraph, rewriting: Rewriting) -> bool:
    """Whether products may be computed in integers."""
    options = rewriting.options
    return not graph.is_body and options.native and options.integers and has_library()


class _Levels:
    """The tensors that are made levels."""

    def __init__(self, graph: CompileGraph, rewriting: Rewriting) -> None:
        self.graph, self.rewriting = graph, rewriting
        self.made: dict[CompileValue, CompileValue] = {}
        self.grids: dict[CompileValue, Grid | str] = {}

    def remove_repeated(self) -> None:
        """Remove each Quantize of a value that has its levels already, and each FakeQuantize that changes nothing."""
        for operation in self.graph.order():
            if operation.type not in ("Quantize", "FakeQuantize") or not is_static(operation):
                continue
            value = operation.inputs[0]
            grid = self.grid(value)
            if not isinstance(grid, Grid) or grid != (operation.attributes.get("grid") or _grid_of(operation)):
                continue
            if operation.type == "Quantize":
                self.rewriting.replace(self.graph, operation, self.levels(value, grid))
            elif grid.is_single and grid.ranges[:2] == grid.ranges[2:]:
                self.rewriting.replace(self.graph, operation, value)

    def rewrite(self, product: Operation) -> str | None:
        """Compute a product in integers; the reason if that is not possible, None if it is or nothing is quantised."""
        data, weights = product.inputs[:2]
        grid = self.grid(data)
        if grid is None:
            return None
        if isinstance(grid, str):
            return grid
        if grid.zero < 0:
            return "no level of its data is 0"
        if not grid.is_single and not self._are_depthwise(data):
            return "its data has several ranges"
        if product.output.fact.element is not F32:
            return f"it is computed in {product.output.fact.element}"
        if product.type == "ConvolutionBackpropData" and len(product.inputs) > 2:
            return "its result has a size of its own"
        found = _integers(self.rewriting, product, weights)
        if isinstance(found, str):
            return found
        definition, made = PRODUCTS[product.type], self.levels(data, grid)
        assert product.definition is not None, "products have definitions"
        attributes = product.definition.ungrouped(product.attributes) | grid_attributes(grid)
        new = created(self.graph, definition, [made, *found], attributes, [product])
        self.rewriting.replace(self.graph, product, new.output)
        return None

    def rewrite_attention(self, attention: Operation) -> None:
        """Compute its scores in integers where queries and keys have levels."""
        query, key = (self.grid(value) for value in attention.inputs[:2])
        if not isinstance(query, Grid) or not isinstance(key, Grid) or attention.output.fact.element is not F32:
            return
        width = attention.inputs[0].fact.static_shape[-1]
        if not query.is_single or not key.is_single or min(query.zero, key.zero) < 0 or width > DEEPEST // 2:
            return
        attributes = {
            "causal": attention.attributes["causal"],
            "query_zero": query.zero,
            "key_zero": key.zero,
            "step": float(query.step[0] * key.step[0]),
        }
        made = [self.levels(value, grid) for value, grid in zip(attention.inputs, (query, key), strict=False)]
        new = created(self.graph, ATTENTION, [*made, *attention.inputs[2:]], attributes, [attention])
        self.rewriting.replace(self.graph, attention, new.output)

    def _are_depthwise(self, value: CompileValue) -> bool:
        """Whether all readers of a value are convolutions of each channel by itself."""
        of_channels = all(one.type == "GroupConvolution" and is_depthwise(one) for one in value.readers)
        is_made = value.producer is not None and value.producer.type == "FakeQuantize"
        return of_channels and is_made and not self.graph.is_target(value)

    def grid(self, value: CompileValue) -> Grid | str | None:
        """The grid of a value that a FakeQuantize made; why it has none; None for any other value."""
        if value not in self.grids:
            producer = value.producer
            if producer is None or not is_static(producer):
                return None
            if producer.type == "FakeQuantize":
                self.grids[value] = _grid_of(producer)
            elif producer.type == "Dequantize":
                self.grids[value], self.made[value] = producer.attributes["grid"], producer.inputs[0]
            elif producer.type in THROUGH and not _is_not_a_maximum_of_levels(producer):
                data = producer.inputs if producer.type == "Concat" else producer.inputs[:1]
                inner = {self.grid(one) for one in data}
                if None in inner or (len(inner) > 1 and not all(isinstance(one, Grid) for one in inner)):
                    return None
                first = next(iter(inner))
                assert first is not None, "None is not among them"
                self.grids[value] = first if len(inner) == 1 else "its data is joined of other levels"
            else:
                return None
        return self.grids[value]

    def levels(self, value: CompileValue, grid: Grid) -> CompileValue:
        """The levels of a quantised value."""
        if value not in self.made:
            producer = value.producer
            assert producer is not None and producer.definition is not None, "a quantised value has a producer"
            if producer.type == "FakeQuantize":
                inputs = producer.inputs[:1] if grid.is_single else producer.inputs[:5]
                made = created(self.graph, QUANTIZE, inputs, grid_attributes(grid), [producer])
            else:
                count = len(producer.inputs) if producer.type == "Concat" else 1
                inputs = [*(self.levels(one, grid) for one in producer.inputs[:count]), *producer.inputs[count:]]
                attributes = producer.definition.ungrouped(producer.attributes)
                made = created(self.graph, producer.definition, inputs, attributes, [producer])
            self.made.update(zip(producer.outputs, made.outputs, strict=True))
        return self.made[value]

    def rewrite_readers(self) -> None:
        """Let the other readers of values that became levels read these."""
        for operation in self.graph.order():
            if operation.type == "Add" and operation in self.graph and is_static(operation):
                self._rewrite_sum(operation)
        for value, made in list(self.made.items()):
            grid = self.grid(value)
            if not isinstance(grid, Grid):
                # The indices of a MaxPool, which nothing reads.
                continue
            others = [one for one in value.readers if one.outputs[0] not in self.made]
            if value.producer is not None and value.producer.type == "Dequantize":
                continue
            if others or self.graph.is_target(value):
                assert value.producer is not None
                values = created(self.graph, DEQUANTIZE, [made], grid_attributes(grid), [value.producer])
                self.graph.replace_all_uses_with(value, values.output)
        self.graph.remove_unused()

    def _rewrite_sum(self, operation: Operation) -> None:
        """Let a sum read levels: of two operands those that are read elsewhere, or were computed earlier."""
        quantised = []
        for index, value in enumerate(operation.inputs):
            grid = self.grid(value)
            if (
                isinstance(grid, Grid)
                and grid.is_single
                and grid.zero >= 0
                and value.fact.shape == operation.output.fact.shape
            ):
                assert value.producer is not None
                quantised.append((value not in self.made, len(value.uses) == 1, value.producer.rank, index, grid))
        others = [value.fact.shape for value in operation.inputs]
        if not quantised or others != [operation.output.fact.shape] * 2 or operation.inputs[0] is operation.inputs[1]:
            return
        *_, index, grid = min(quantised, key=lambda each: each[:4])
        other = operation.inputs[1 - index]
        if other.constant is None:
            levels = self.levels(operation.inputs[index], grid)
            other = self._values_of_product(other) or other
            new = created(self.graph, ADD_LEVELS, [other, levels], grid_attributes(grid), [operation])
            self.graph.replace_all_uses_with(operation.output, new.output)
            self.graph.remove(operation)

    def _values_of_product(self, value: CompileValue) -> CompileValue | None:
        """The values of the levels of a product that nothing else reads, as its end: they are not stored in between."""
        dequantize = value.producer
        if dequantize is None or dequantize.type != "Dequantize" or len(value.uses) != 1:
            return None
        stored, grid = dequantize.inputs[0], dequantize.attributes["grid"]
        quantize = stored.producer
        if quantize is None or quantize.type != "Quantize" or len(stored.uses) != 1 or not grid.is_single:
            return None
        product = quantize.inputs[0].producer
        while product is not None and product.type in ("Add", "Relu", "Clamp"):
            product = product.inputs[0].producer
        is_end = product is not None and product.definition in PRODUCTS.values()
        if not is_end or quantize.attributes["grid"] != grid or any(map(self.graph.is_target, (stored, value))):
            return None
        return fake_quantized(self.graph, self.rewriting, quantize.inputs[0], grid, [quantize, dequantize])


def fake_quantized(
    graph: CompileGraph, rewriting: Rewriting, data: CompileValue, grid: Grid, origins: list[Operation]
) -> CompileValue:
    """The result of a FakeQuantize with one range, in place of the last of its origins."""
    bounds = [rewriting.literal(np.array(bound[0], np.float32), F32) for bound in grid.ranges]
    definition, attributes = resolve("FakeQuantize", "opset1"), {"levels": grid.levels}
    return created(graph, definition, [data, *bounds], attributes, origins).output


def is_depthwise(operation: Operation) -> bool:
    """Whether a GroupConvolution has one input and one output channel in each group."""
    return operation.inputs[1].fact.static_shape[1:3] == (1, 1)


def _is_not_a_maximum_of_levels(operation: Operation) -> bool:
    """True for a MaxPool whose indices are read, or with a window in the padding alone: its maximum has no level."""
    if operation.type != "MaxPool":
        return False
    sizes = operation.inputs[0].fact.static_shape[2:]
    populations = window_populations(sizes, operation.attributes["attributes"].windows(sizes))
    return any(output.uses for output in operation.outputs[1:]) or not (populations > 0).all()


def _grid_of(quantize: Operation) -> Grid | str:
    """The grid of a FakeQuantize; why it has none."""
    bounds = [value.known for value in quantize.inputs[1:5]]
    levels = quantize.attributes["levels"]
    if levels > MOST:
        return f"its data has {levels} levels"
    if quantize.output.fact.element is not F32:
        return f"its data is {quantize.output.fact.element}"
    if any(bound is None for bound in bounds):
        return "the range of its data is computed"
    shape = quantize.output.fact.static_shape
    if 0 in shape:
        return "its data is empty"
    channels = (1, *shape[1:2], *(1,) * (len(shape) - 2))
    ranges = [np.asarray(bound, np.float64) for bound in bounds]
    if any(bound.size != 1 and (1,) * (len(shape) - bound.ndim) + bound.shape != channels for bound in ranges):
        return "its data has several ranges"
    size = max(bound.size for bound in ranges)
    grid = Grid(levels, *(tuple(np.broadcast_to(bound.reshape(-1), size).tolist()) for bound in ranges))
    low, high, out_low, out_high = (np.broadcast_to(bound.reshape(-1), size) for bound in ranges)
    is_finite = all(np.isfinite(bound).all() for bound in ranges)
    if not is_finite or not (low < high).all() or not (out_low < out_high).all():
        return "the range of its data is empty or not finite"
    return grid if levels_of(grid, len(shape)) is not None else "its levels are not computed by multiplication"


def _integers(rewriting: Rewriting, product: Operation, weights: CompileValue) -> tuple[CompileValue, ...] | str:
    """The weights of a product as integers of 8 bits, and the scale of each output channel; why they are none."""
    shape = weights.fact.static_shape
    axes = _channel_axes(product, len(shape))
    if axes is None:
        return "its weights are a vector"
    channels = math.prod(shape[axis] for axis in axes)
    if math.prod(shape) // max(1, channels) > DEEPEST:
        return f"sums of {math.prod(shape) // channels} products do not fit 32 bits"
    source = weights.constant
    if isinstance(source, CompressedSource):
        return _of_compressed(rewriting, source, shape, axes)
    producer = weights.producer
    if producer is not None and producer.type == "FakeQuantize":
        return _of_quantized(rewriting, producer, shape, axes)
    return "its weights are not quantised"


def _channel_axes(product: Operation, rank: int) -> tuple[int, ...] | None:
    """The axes of the weights whose positions are output channels."""
    if product.type == "MatMul":
        return None if rank != 2 else (0,) if product.attributes["transpose_b"] else (1,)
    return {"GroupConvolution": (0, 1), "ConvolutionBackpropData": (1,)}.get(product.type, (0,))


def _of_compressed(
    rewriting: Rewriting, source: CompressedSource, shape: tuple[int, ...], axes: tuple[int, ...]
) -> tuple[CompileValue, ...] | str:
    packed = source.packed
    if source.in_f16:
        return "its weights are computed in f16"
    lead = packed.shape[: source.grouped]
    if packed.shape != shape:
        # Output channels may be split into those of groups.
        lead = tuple(shape[axis] for axis in axes)
        if source.groups != 1 or axes != tuple(range(len(axes))) or math.prod(lead) != source.count:
            return "its weights are reshaped"
    ones = (1,) * (len(shape) - len(lead))
    scale = _by_channel(source.scale.reshape(*lead, *ones), shape, axes)
    if scale is None:
        return "its weights have several scales in a channel"
    zero_point = source.zero_point
    if zero_point is not None and ((zero_point != np.rint(zero_point)).any() or (np.abs(zero_point) > 256).any()):
        return "its zero points are not whole"

    def integers(kind: type = np.int8) -> np.ndarray:
        values = unpack(packed.element, packed.raw, packed.count).reshape(shape)
        if zero_point is not None:
            values = np.subtract(values, zero_point.reshape(*lead, *ones).astype(np.int16), dtype=np.int16)
        return values.astype(kind, copy=False)

    low, high = packed.element.limits
    least, most = (0.0, 0.0) if zero_point is None else (zero_point.min(), zero_point.max())
    if low - most < -128 or high - least > 127:
        # Not every value of the type occurs.
        found = integers(np.int16)
        if found.min(initial=0) < -128 or found.max(initial=0) > 127:
            return "its weights minus their zero points do not fit 8 bits"
    return _constants(rewriting, (source,), shape, integers, scale)


def _by_channel(scale: np.ndarray, shape: tuple[int, ...], axes: tuple[int, ...]) -> np.ndarray | None:
    """The scale of each channel; None if it varies along other axes."""
    whole = scale
    for axis in range(len(shape)):
        if axis not in axes and whole.shape[axis] != 1:
            first = whole.take([0], axis)
            if not (whole == first).all():
                return None
            whole = first
    sizes = [shape[axis] if axis in axes else 1 for axis in range(len(shape))]
    return np.broadcast_to(whole, sizes).reshape(-1).astype(np.float32)


def _of_quantized(
    rewriting: Rewriting, quantize: Operation, shape: tuple[int, ...], axes: tuple[int, ...]
) -> tuple[CompileValue, ...] | str:
    """Weights that a FakeQuantize makes of a constant."""
    data, bounds, levels = (
        quantize.inputs[0],
        [value.known for value in quantize.inputs[1:5]],
        quantize.attributes["levels"],
    )
    if data.constant is None or any(bound is None for bound in bounds) or levels > MOST:
        return "its weights are computed"
    low, high, out_low, out_high = (
        bound.reshape((1,) * (len(shape) - bound.ndim) + bound.shape) for bound in bounds if bound is not None
    )
    if quantize.attributes.get("auto_broadcast", "numpy") != "numpy" or not (low < high).all():
        return "the range of its weights is empty"
    ranges = np.broadcast_arrays(low, high, out_low, out_high)
    if not all(np.isfinite(bound).all() for bound in ranges) or not (out_low < out_high).all():
        return "the range of its weights is not finite"
    zero = np.where(out_low == 0, 0, np.where(out_high == 0, levels - 1, zero_level(out_low, out_high, levels)))
    if (zero < 0).any():
        return "no level of its weights is 0"
    if (zero > 128).any() or (levels - 1 - zero > 127).any():
        return "its weights minus their zero points do not fit 8 bits"
    step = ((out_high.astype(np.float64) - out_low) / (levels - 1)).astype(np.float32)
    scale = _by_channel(np.broadcast_to(step, ranges[0].shape), shape, axes)
    if scale is None or _by_channel(np.broadcast_to(zero, ranges[0].shape), shape, axes) is None:
        return "its weights have several ranges in a channel"
    constant = data.constant

    def integers() -> np.ndarray:
        index = nearest_levels(np.clip(constant.array(), low, high), low, high, levels)
        return (index - zero).astype(np.int8)

    sources = [value.constant for value in quantize.inputs[:5] if value.constant is not None]
    return _constants(rewriting, tuple(sources), shape, integers, scale, levels)


def _constants(
    rewriting: Rewriting,
    sources: tuple[ConstantSource, ...],
    shape: tuple[int, ...],
    integers: Callable[[], np.ndarray],
    scale: np.ndarray,
    *key: object,
) -> tuple[CompileValue, ...]:
    def make() -> ConstantSource:
        return ConstantSource(I8, shape, integers)

    found = rewriting.constants.share(("integers", shape, *key), sources, make)
    return CompileValue(found.fact, constant=found), rewriting.literal(scale, F32)
