"""Several items in one run: joined along axis 0 of the inputs, with results that are cut along axis 0."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from irexec.analysis.model import Model, Port
from irexec.analysis.shape_inference import infer_shapes
from irexec.errors import InputError, NodeError
from irexec.ir.dims import shape_text
from irexec.ir.facts import Fact
from irexec.ir.graph import Value
from irexec.ir.shape_text import ShapeLike

_TRIED = (2, 3)
"""Batch sizes for which shapes are inferred, to see whether results follow."""


@dataclass(frozen=True)
class Batching:
    """Number of items that a run takes.

    Attributes:
        has_axis: whether axis 0 of every input that is not a scalar counts items; otherwise an item is a whole set of
            inputs.
        fixed: the size of that axis; None if any size fits.
        is_divisible: whether axis 0 of every result counts items, too. Otherwise a run takes one item.
    """

    has_axis: bool
    fixed: int | None
    is_divisible: bool

    def size(self, wanted: int | None) -> int:
        """Number of items of a run: ``wanted``, unless the model fixes the number."""
        if not self.has_axis or not self.is_divisible:
            return 1
        return self.fixed or wanted or DEFAULT_SIZE


DEFAULT_SIZE = 8
"""Default number of items of a batch: small batches have the same overhead for each run, large ones need memory."""


def batching_of(model: Model, values: Sequence[Value]) -> Batching:
    """The batching of a model.

    Args:
        model: with facts of its inputs; it is not changed.
        values: the requested results.

    Raises:
        InputError: the model always takes more than one item, and its results cannot be cut.
    """
    ports = [port for port in model.inputs if port.shape != ()]
    shapes = [port.shape for port in ports]
    if not ports or not all(shapes):
        return Batching(False, None, True)
    sizes = {shape[0] if isinstance(shape[0], int) else None for shape in shapes if shape}
    if len(sizes) != 1:
        return Batching(False, None, True)
    (fixed,) = sizes
    if fixed is not None:
        return _fixed(model, ports, values, fixed)
    return Batching(True, None, all(_follows(model, ports, values, size) for size in _TRIED))


def _fixed(model: Model, ports: Sequence[Port], values: Sequence[Value], size: int) -> Batching:
    """The batching of a model whose inputs all have ``size`` at axis 0.

    A size of 1 is a batch even where the results do not have that axis.
    """
    if size == 0:
        return Batching(False, None, True)
    if _follows(model, ports, values, size):
        return Batching(True, size, True)
    if size == 1:
        return Batching(True, 1, False)
    if all(port.shape is not None and len(port.shape) < 4 for port in ports):
        # A vector or matrix as a whole, such as the features of one item.
        return Batching(False, None, True)
    facts = infer_shapes(model, tolerant=True).facts
    other = next(value for value in values if not _counts(facts.get(value), size))
    result = f"{other.node.name!r} of shape {shape_text(facts[other].shape)}"
    raise InputError(
        f"the model takes {size} items at once, and its result {result} cannot be cut into {size}: "
        "--rebatch or --shape may give it a batch of 1"
    )


def _follows(model: Model, ports: Sequence[Port], values: Sequence[Value], size: int) -> bool:
    """True if axis 0 of every value has this size whenever axis 0 of the inputs has it."""
    given = {port.node: Fact(port.element, port.shape) for port in model.inputs}
    given |= {port.node: Fact(port.element, (size, *port.shape[1:])) for port in ports if port.shape}
    facts: Mapping[Value, Fact] = infer_shapes(model, given, tolerant=True).facts
    return all(_counts(facts.get(value), size) for value in values)


def _counts(fact: Fact | None, size: int) -> bool:
    return fact is not None and bool(fact.shape) and fact.shape is not None and fact.shape[0] == size


def rebatch(model: Model) -> None:
    """Let axis 0 of every input that is not a scalar have any size.

    Raises:
        InputError: the model does not accept any size, for instance since a Reshape has the size as a constant.
    """
    shapes: dict[str | int, ShapeLike] = {port.name: (None, *port.shape[1:]) for port in model.inputs if port.shape}
    try:
        model.reshape(shapes)
    except NodeError as error:
        raise InputError(f"the model does not take a batch of another size (--rebatch): {error}") from None
