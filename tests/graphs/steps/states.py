"""Variables: with and without an initial value, read once or often, of one shape or of one that grows."""

from __future__ import annotations

import numpy as np

from irexec.errors import check
from tests.graphs.growth import Growth, Tensor
from tests.graphs.steps import step
from tests.graphs.steps.elementwise import binary_of


def _read(g: Growth, shape: list[int], text: str, kind: str) -> Tensor:
    """A ReadValue, and its first array."""
    name = f"v{g.variables}"
    g.variables += 1
    given = {"variable_id": name, "variable_shape": text, "variable_type": kind}
    if g.gen.chance(0.4):
        value = g.builder.emit("ReadValue", version=6, **given)
        array = np.zeros(shape, np.float32)
    else:
        first = g.random(shape, kind)
        # Parameters become dynamic when the graph is complete, and OpenVINO refuses a variable that excludes a possible
        # shape of its initial value.
        given["variable_shape"] = ",".join("?" * len(shape))
        value = g.builder.emit("ReadValue", first.value, version=6, **given)
        array = first.array
    element = g.builder.fact(value).element
    check(element is not None, "its type is known")
    return Tensor(value, element, array.astype(element.carrier))


@step(1)
def old_state(g: Growth) -> None:
    """A variable of opset 3, whose shape and type are those of its initial value."""
    check(g.depth == 0, "variables outside of bodies")
    first = g.floats((0, 3), 1)
    name = f"v{g.variables}"
    g.variables += 1
    value = g.builder.emit("ReadValue", first.value, version=3, variable_id=name)
    read = Tensor(value, first.element, first.array)
    after = g.one("Tanh", binary_of(g, read))
    after = after if after.shape == read.shape else g.as_shape(after, read.shape)
    # A function of two tensors may take its second one alone, and OpenVINO refuses an Assign-3 that does not depend on
    # its ReadValue.
    after = g.one("Maximum", after, read)
    g.builder.emit("Assign", after.value, variable_id=name, version=3)
    g.results.append(read)
    g.add(read, after)


@step(2)
def state(g: Growth) -> None:
    """A variable that keeps its shape."""
    check(g.depth == 0, "variables outside of bodies")
    x = g.floats((1, 4), 1)
    read = _read(g, list(x.shape), ",".join(map(str, x.shape)), x.kind)
    after = g.one(g.gen.pick("Add", "Multiply", "Maximum"), *g.gen.some([read, x], 2))
    after = g.one("Tanh", after)
    if g.gen.chance(0.1):
        after = read
    g.builder.emit("Assign", after.value, variable_id=f"v{g.variables - 1}", version=6)
    g.add(*g.gen.some([read, after], 1))
    if g.gen.chance(0.3):
        g.add(binary_of(g, read))


@step(1)
def cache(g: Growth) -> None:
    """A variable that grows along an axis in every run."""
    check(g.depth == 0, "variables outside of bodies")
    x = g.floats((2, 4), 1)
    axis = g.gen.size(0, x.rank - 1)
    shape = [0 if k == axis else size for k, size in enumerate(x.shape)]
    read = _read(g, shape, ",".join("?" if k == axis else str(size) for k, size in enumerate(shape)), x.kind)
    whole = g.one("Concat", read, x, axis=axis)
    g.builder.emit("Assign", whole.value, variable_id=f"v{g.variables - 1}", version=6)
    if g.gen.chance():
        whole = g.one("Softmax", whole, axis=axis)
    g.add(g.one(g.gen.pick("ReduceSum", "ReduceMax"), whole, g.ints([axis]), keep_dims=g.gen.chance()))


@step(1)
def replaced(g: Growth) -> None:
    """A variable that takes the shape of a tensor, which may be another one in each run."""
    check(g.depth == 0, "variables outside of bodies")
    x = g.floats((1, 4), 1)
    given = g.gen.chance()
    shape = list(x.shape) if given else [0] * x.rank
    name = f"v{g.variables}"
    g.variables += 1
    attributes = {"variable_id": name, "variable_shape": ",".join("?" * x.rank), "variable_type": x.kind}
    initial = [g.one("Tanh", x).value] if given else []
    value = g.builder.emit("ReadValue", *initial, version=6, **attributes)
    array = np.tanh(x.array.astype(np.float64)) if given else np.zeros(shape)
    read = Tensor(value, x.element, x.element.codec.round(array.astype(x.element.carrier)))
    g.builder.emit("Assign", x.value, variable_id=name, version=6)
    total = g.one("ReduceSum", read, g.ints(list(range(x.rank))), keep_dims=False)
    g.results.append(total)
    g.add(total, g.one("ShapeOf", read))
    if g.gen.chance(0.3):
        g.add(binary_of(g, total))
