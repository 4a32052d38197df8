"""Products of 8-bit integers with other values in a runtime: exact arithmetic shows the wrong side.

ONNX Runtime computes QLinearConv, QLinearMatMul, MatMulInteger and fused DequantizeLinear and QuantizeLinear with
integer instructions that saturate on some processors. The layers are found in irexec's graph of the model: both
operands of such a product come from 8-bit integers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from irexec.analysis.attributes import typed_attributes
from irexec.analysis.model import Model
from irexec.analysis.shape_inference import infer_shapes
from irexec.dtypes.elements import F64, I8, U8
from irexec.ir.constants import constant_value
from irexec.ir.facts import Fact
from irexec.ir.graph import Node, Value
from irexec.ir.order import topological
from irexec.messages import counted
from irexec.schema.registry import resolve
from irexec.tools.compare.comparison import Known
from irexec.tools.compare.isolate import Isolated
from irexec.tools.compare.observe import Observed, observe
from irexec.tools.compare.options import CompareOptions
from irexec.tools.compare.pairs import TensorPair
from irexec.tools.compare.rows import layer
from irexec.tools.compare.saturation import Terms, lost, terms_of_matrices, terms_of_windows
from irexec.tools.compare.sides import ModelSide
from irexec.tools.engines.runtimes import Arrays, Runtime

_BYTES = (U8, I8)
_MOST_TERMS = 1 << 22
"""Maximum number of products that are examined one by one."""
_RTOL = 1e-4
"""Relative tolerance of floats from an exact product of integers. Bytes may differ by 1: libraries multiply scales in
several orders."""


@dataclass(frozen=True)
class _Operand:
    """An operand of a product: ``(integers - zero) * scale``, reshaped where a layer of groups needs it.

    Attributes:
        integers: of i8 or u8.
        zero, scale: None for 0 and 1.
    """

    integers: Value
    zero: Value | None
    scale: Value | None


@dataclass(frozen=True)
class _Product:
    """A product of bytes.

    Attributes:
        node: the Convolution, GroupConvolution or MatMul.
        operands: activations and weights.
        target: the compared tensor: the next one of bytes, else the first observable one.
    """

    node: Node
    operands: tuple[_Operand, _Operand]
    target: Value


def explain(model: Model, runtime: Runtime, inputs: Arrays, options: CompareOptions) -> Known | None:
    """The first product of bytes with different values in irexec and the runtime, and the right side.

    Args:
        model: the model of the runtime.
        runtime: ONNX Runtime.
        inputs: the inputs of one run.
        options: threads, memory and time of irexec.

    Returns:
        None without such a product, or if neither side is right.

    Raises:
        RunTimeoutError: a run takes longer than the timeout.
        IrexecError: the runtime does not run the model for these tensors.
    """
    facts = infer_shapes(model, tolerant=True).facts
    products = list(_products(model, runtime, facts))
    if not products:
        return None
    outputs = (
        value for node in topological(model)[0] if node.type not in ("Constant", "Parameter") for value in node.outputs
    )
    bytes_of = [value for value in outputs if _is_of_bytes(value, facts) and runtime.gives(value)]
    given = observe(runtime, [inputs], [*bytes_of, *(product.target for product in products)])
    arrays: dict[Value, np.ndarray] = {
        value: found[0] for value, found in given.arrays.items() if isinstance(value, Value)
    }
    ports = {port.node.outputs[0]: inputs[port.name] for port in model.inputs}
    known = ports | {value: array for value, array in arrays.items() if _is_of_bytes(value, facts)}
    irexec = _Irexec(ModelSide("", model, "irexec"), options)
    products = [product for product in products if product.target in arrays]
    own = irexec.values([product.target for product in products], known)
    for product in products:
        theirs, mine = arrays[product.target], own.get(product.target)
        if mine is not None and mine.shape == theirs.shape and _wrong(theirs, mine).any():
            return _Trial(product, irexec, known, theirs, mine, runtime.name).verdict()
    return None


def _is_of_bytes(value: Value, facts: Mapping[Value, Fact]) -> bool:
    return value in facts and facts[value].element in _BYTES


def _products(model: Model, runtime: Runtime, facts: Mapping[Value, Fact]) -> Iterator[_Product]:
    readers: dict[Value, list[Node]] = {}
    for node in model.nodes:
        for value in node.inputs:
            if value is not None:
                readers.setdefault(value, []).append(node)
    for node in topological(model)[0]:
        if node.type in ("Convolution", "GroupConvolution", "MatMul"):
            operands = [None if value is None else _operand(value, facts) for value in node.inputs]
            target = _target(node, readers, runtime, facts)
            if len(operands) == 2 and operands[0] is not None and operands[1] is not None and target is not None:
                yield _Product(node, (operands[0], operands[1]), target)


def _operand(value: Value, facts: Mapping[Value, Fact]) -> _Operand | None:
    scale = zero = None
    value = _before(value, "Reshape")
    if value.node.type == "Multiply":
        source, scale = value.node.inputs
        if source is None:
            return None
        value = _before(source, "Reshape")
    if value.node.type == "Subtract":
        source, zero = value.node.inputs
        if source is None:
            return None
        value = source
    source = value.node.inputs[0] if value.node.type == "Convert" else None
    return None if source is None or not _is_of_bytes(source, facts) else _Operand(source, zero, scale)


def _before(value: Value, type: str) -> Value:
    """The input of a layer of this type; ``value`` itself if its layer is of another type."""
    source = value.node.inputs[0] if value.node.type == type else None
    return value if source is None else source


def _target(
    node: Node, readers: Mapping[Value, Sequence[Node]], runtime: Runtime, facts: Mapping[Value, Fact]
) -> Value | None:
    """The target of a product, see _Product; only one layer reads each tensor in between."""
    value, first = node.outputs[0], None
    while True:
        if runtime.gives(value):
            if _is_of_bytes(value, facts):
                return value
            first = first or value
        after = readers.get(value, [])
        if len(after) != 1 or len(after[0].outputs) != 1 or after[0].bodies:
            return first
        value = after[0].outputs[0]


class _Irexec:
    """irexec as a runtime for parts of a model.

    Args:
        side: the model.
        options: threads, memory and time.
    """

    def __init__(self, side: ModelSide, options: CompareOptions) -> None:
        self._side, self._options = side, options

    def values(self, wanted: Sequence[Value], known: Mapping[Value, np.ndarray]) -> dict[Value, np.ndarray]:
        """Results of the layers of ``wanted`` for the nearest known tensors in front of them; layers that fail are left
        out."""
        found = Observed()
        found.arrays = {value: [array] for value, array in known.items()}
        isolated = Isolated(self._side, {value: value for value in known}, self._options)
        pairs = isolated.chosen([TensorPair(value, value, "") for value in wanted], [])
        computed = isolated.observed_each(pairs, found, "irexec", 1)
        return {value: arrays[0] for value, arrays in computed.arrays.items() if isinstance(value, Value)}

    def value(self, wanted: Value, known: Mapping[Value, np.ndarray]) -> np.ndarray | None:
        """One value: a constant, a known value, or the result of its layer."""
        if wanted.node.constant is not None:
            return constant_value(wanted.node.constant)
        return known[wanted] if wanted in known else self.values([wanted], known).get(wanted)


@dataclass(frozen=True)
class _Trial:
    """A product with different values in irexec and the runtime.

    Attributes:
        product: the product.
        irexec: irexec for parts of its model.
        known: tensors in front of the product, as the runtime had them.
        theirs, own: the target in the runtime and in irexec.
        name: the name of the runtime.
    """

    product: _Product
    irexec: _Irexec
    known: Mapping[Value, np.ndarray]
    theirs: np.ndarray
    own: np.ndarray
    name: str

    def verdict(self) -> Known | None:
        """The right side; None if neither is right, or if this is unknown."""
        sums = self._exact_sums()
        exact = None if sums is None else self._after(sums)
        if sums is None or exact is None or exact.shape != self.theirs.shape:
            return None
        wrong, target = _wrong(self.theirs, exact), self.product.target
        own_is_wrong = bool(_wrong(self.own, exact).any())
        if own_is_wrong is bool(wrong.any()):
            return None
        count = f"{int(wrong.sum()):,} of {counted(wrong.size, 'value')} of {target.name!r}"
        if own_is_wrong:
            count = f"{int(_wrong(self.own, exact).sum()):,} of {counted(wrong.size, 'value')} of {target.name!r}"
            text = f"irexec rounds sums of products of bytes: {count} differ from the exact product of {self.name}"
            return Known("", layer(target), text, self.name)
        if self._saturates(sums, wrong):
            text = f"{self.name} saturates sums of two products of bytes at 16 bits: {count} are wrong"
        else:
            text = f"{count} are not those of the exact product of integers in {self.name}"
        return Known("", layer(target), f"{text}; irexec's product is exact", "irexec")

    def _exact_sums(self) -> np.ndarray | None:
        """The product in f64, where sums of integers are exact."""
        node = self.product.node
        arrays = [None if value is None else self.irexec.value(value, self.known) for value in node.inputs]
        definition = resolve(node.type, node.version)
        attributes = typed_attributes(node, definition).values
        if any(array is None for array in arrays):
            return None
        found: np.ndarray = definition(*(np.asarray(array, np.float64) for array in arrays), **attributes)
        return found

    def _after(self, sums: np.ndarray) -> np.ndarray | None:
        """The target for these sums."""
        result, target = self.product.node.outputs[0], self.product.target
        product = sums.astype(np.float64 if result.fact is not None and result.fact.element is F64 else np.float32)
        return (
            product if result is target else self.irexec.values([target], {**self.known, result: product}).get(target)
        )

    def _saturates(self, sums: np.ndarray, wrong: np.ndarray) -> bool:
        """Whether saturated sums lead to the values of the runtime, in one of the orders of libraries."""
        weights, scale = self._array(1), self._scale(sums.shape)
        if wrong.shape != sums.shape or weights is None or weights.dtype != np.int8 or scale is None:
            return False
        most = max(1, _MOST_TERMS * sums.shape[1] // weights.size) if sums.ndim > 1 else 1
        at = tuple(axis[:most] for axis in np.nonzero(wrong))
        terms = self._terms(weights, at)
        for loss in () if terms is None else lost(terms):
            saturated = sums.copy()
            saturated[at] += loss * scale[at]
            found = self._after(saturated)
            if found is not None and not _wrong(self.theirs[at], found[at]).any():
                return True
        return False

    def _terms(self, weights: np.ndarray, at: tuple[np.ndarray, ...]) -> Terms | None:
        """The factors of some sums. ONNX Runtime adds 128 to signed activations, which makes them unsigned."""
        x, node = self._array(0), self.product.node
        zero = self.product.operands[0].zero
        zeros = np.zeros(1) if zero is None else self.irexec.value(zero, self.known)
        if x is None or zeros is None or zeros.size != 1:
            return None
        higher = 128 if x.dtype == np.int8 else 0
        x = x.astype(np.int16) + higher
        values = typed_attributes(node, resolve(node.type, node.version)).values
        if node.type == "MatMul":
            if x.ndim < 2 or weights.ndim < 2:
                return None
            left, right = (
                np.swapaxes(array, -1, -2) if values[f"transpose_{side}"] else array
                for side, array in (("a", x), ("b", weights))
            )
            return terms_of_matrices(left, right, at)
        weights = weights if node.type == "GroupConvolution" else weights[None]
        taken = values["attributes"].windows(x.shape[2:], weights.shape[3:])
        return terms_of_windows(x, weights, int(zeros.flat[0]) + higher, at, taken)

    def _array(self, index: int) -> np.ndarray | None:
        """The integers of an operand, in the shape of the product's input."""
        value = self.product.node.inputs[index]
        integers = self.irexec.value(self.product.operands[index].integers, self.known)
        made = None if value is None else self.irexec.value(value, self.known)
        return None if integers is None or made is None else integers.reshape(made.shape)

    def _scale(self, shape: tuple[int, ...]) -> np.ndarray | None:
        """The factor of each sum of integers; None if it depends on the terms of the sum."""
        found = np.ones(shape)
        is_matrix = self.product.node.type == "MatMul"
        for index, operand in enumerate(self.product.operands):
            scale = None if operand.scale is None else self.irexec.value(operand.scale, self.known)
            if operand.scale is None or (scale is not None and scale.size == 1):
                found = found if scale is None else found * scale.flat[0]
            elif scale is None or index == 0 or scale.size != shape[-1 if is_matrix else 1]:
                return None
            else:
                found = found * (scale.reshape(-1) if is_matrix else scale.reshape(-1, *(1,) * (len(shape) - 2)))
        return found


def _wrong(values: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Mask of unequal values: bytes may differ by 1, 32-bit integers not at all, floats by rounding."""
    a, b = values.astype(np.float64), others.astype(np.float64)
    if values.dtype.kind != "f":
        return np.asarray(np.abs(a - b) > (1 if values.dtype.itemsize == 1 else 0))
    root = float(np.sqrt(np.mean(np.square(b)))) if b.size else 0.0
    return np.asarray(~(np.abs(a - b) <= _RTOL * (np.abs(b) + root)))
