"""Open axes with one possible size: an input declares to take others, and a layer does not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from irexec.analysis.model import Model, Port
from irexec.analysis.open_sizes import failing, sizes_for, within
from irexec.analysis.shape_inference import Inference
from irexec.ir import codes
from irexec.ir.dims import ANY, Dim, Size, high, is_static, low
from irexec.ir.findings import Finding
from irexec.ir.graph import ModelGraph, Node
from irexec.ir.order import topological


def frozen_findings(model: ModelGraph, inference: Inference) -> Iterator[Finding]:
    """Layers that take one size only of an axis that an input leaves open; none in a model with faults."""
    if not inference.failures and not model.problems:
        for one in frozen_axes(Model.of(model)):
            yield one.layer.finding(codes.FROZEN_AXIS, f"the input {one}")


@dataclass(frozen=True)
class FrozenAxis:
    """An open axis of an input, for which only one size was found.

    Attributes:
        port: the input.
        axis, size: the axis, and this size.
        layer: the first layer that does not take another size.
        declared: the range that the input declares, where it leaves this size out.
    """

    port: Port
    axis: int
    size: int
    layer: Node
    declared: Size | None = None

    def __str__(self) -> str:
        fault = f"takes {self.size} only: {self.layer.type} {self.layer.name!r} is made for it"
        if self.declared is not None:
            return f"{self.port.name!r} declares {self.declared} for axis {self.axis}, but {fault}"
        return f"{self.port.name!r} leaves axis {self.axis} open, but {fault}"


def frozen_axes(model: Model, shapes: Mapping[str, tuple[int, ...]] | None = None) -> list[FrozenAxis]:
    """The open axes for which all layers take one size, and no other one that is tried.

    Where the declared ranges have no size that all layers take, the size may lie outside of them.

    Args:
        model: the model, with the shapes that it declares.
        shapes: shapes by names of inputs that the model takes; they are looked for unless they are given.
    """
    ports = [port for port in model.inputs if port.shape is not None and not is_static(port.shape)]
    if not ports:
        return []
    if shapes is None:
        shapes = {port.name: port.shape for port in model.inputs if port.shape is not None and is_static(port.shape)}
        choose = sizes_for(model)
        chosen = choose(ports, shapes) or choose([_opened(port) for port in ports], shapes)
        if chosen is None:
            return []
        shapes |= {port.name: shape for port, shape in zip(ports, chosen, strict=True)}
    search = _Frozen(model, shapes)
    return [
        one for port in ports if len(port.shape or ()) == len(shapes.get(port.name, ()))
        for axis, size in enumerate(port.shape or ()) if isinstance(size, Dim)
        if (one := search.frozen(port, axis, size)) is not None
    ]  # fmt: skip


def _opened(port: Port) -> Port:
    """An input that takes any size along each axis that it leaves open."""
    return replace(port, shape=tuple(one if isinstance(one, int) else ANY for one in port.shape or ()))


class _Frozen:
    """The search for other sizes of axes.

    Args:
        model: the model.
        shapes: shapes by names of inputs that it takes.
    """

    def __init__(self, model: Model, shapes: Mapping[str, tuple[int, ...]]) -> None:
        self._model, self._shapes, self._before = model, shapes, failing(model, shapes)
        self._known: dict[tuple[tuple[int, ...], ...], set[Node]] = {}

    def frozen(self, port: Port, axis: int, size: Dim) -> FrozenAxis | None:
        """The axis with its one size; None if there is another one that all layers take."""
        own, layer = self._shapes[port.name][axis], None
        # Tokens and their mask change together; the height and width of an image need not.
        equal = [
            (one.name, i) for one in self._model.inputs for i, dim in enumerate(one.shape or ())
            if isinstance(dim, Dim) and self._shapes.get(one.name, ())[i : i + 1] == (own,) and bool(i) is bool(axis)
        ]  # fmt: skip
        for other in dict.fromkeys(within(size, wanted) for wanted in (own + 1, 2 * own, 3 * own, own // 2)):
            if other == own:
                continue
            faults = self._faults(equal, other)
            if not faults or not self._faults([(port.name, axis)], other):
                return None
            layer = layer or next((node for node in topological(self._model)[0] if node in faults), None)
        is_declared = low(size) <= own <= (high(size) or own)
        return None if layer is None else FrozenAxis(port, axis, own, layer, None if is_declared else size)

    def _faults(self, axes: Sequence[tuple[str, int]], size: int) -> set[Node]:
        """The layers that do not take another size of some axes."""
        changed = {name: list(shape) for name, shape in self._shapes.items()}
        for name, axis in axes:
            changed[name][axis] = size
        shapes = {name: tuple(shape) for name, shape in changed.items()}
        key = tuple(shapes.values())
        if key not in self._known:
            self._known[key] = failing(self._model, shapes) - self._before
        return self._known[key]
