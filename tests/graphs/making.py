"""A random graph: the model, and the inputs of some runs."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

import numpy as np

from irexec.analysis.model import Model
from irexec.errors import IrexecError, OpError
from tests.graphs.growth import Growth
from tests.graphs.steps import steps

_SIZES = (1, 1, 1, 2, 2, 2, 3, 3, 4, 5, 6, 7, 8, 16)


@dataclass(frozen=True, eq=False)
class Made:
    """A model, and the arrays of its inputs, in order, for each run."""

    model: Model
    runs: list[list[np.ndarray]]


def make(seed: int, steps: tuple[int, int] | None = None) -> Made:
    """The graph of a seed, of 3 to 25 steps unless other limits are given."""
    rng = np.random.default_rng(seed)
    g = Growth(rng)
    for _ in range(g.gen.size(1, 3)):
        g.pool.append(g.parameter(g.gen.rng.uniform(-2, 2, _shape(g)), g.kind))
    if g.gen.chance(0.15):
        x = g.gen.tensor(_shape(g), ("i32", "i64", "u8", "i8", "boolean", "u32", "i16"), 0, 9)
        g.pool.append(g.parameter(x.array, x.element.name))
    grow(g, g.gen.size(*(steps or (3, 25))))
    return made_of(g)


def _shape(g: Growth) -> list[int]:
    rank = g.gen.pick(0, 1, 1, 2, 2, 3, 3, 4, 4, 4, 4, 5)
    shape = [g.gen.pick(*_SIZES) for _ in range(rank)]
    while np.prod(shape) > 2048:
        shape[int(np.argmax(shape))] //= 2
    if rank and g.gen.chance(0.015):
        shape[g.gen.size(0, rank - 1)] = 0
    return shape


def grow(g: Growth, count: int) -> None:
    """Grow by some steps; one that finds nothing to start from, or whose operation refuses its inputs, is left out."""
    table = steps()
    weights = np.array([weight for weight, _ in table.values()])
    functions = [function for _, function in table.values()]
    for index in g.gen.rng.choice(len(functions), count, p=weights / weights.sum()):
        with contextlib.suppress(OpError):
            functions[index](g)


def made_of(g: Growth) -> Made:
    """The model of what has grown, and its runs."""
    read = {value for node in g.builder.graph.nodes for value in node.inputs}
    last = [x for x in g.pool if x.value not in read]
    chosen = [g.pool[-1], *g.gen.some(last), *(x for x in g.pool if g.gen.chance(0.15))]
    for x in [*chosen[: g.gen.size(1, 6)], *g.results]:
        g.builder.result(x.value)
    if g.gen.chance(0.05):
        g.builder.result(g.pool[-1].value)
    g.builder.drop_unused()
    model = g.builder.model()
    given = [x for x in g.parameters if x.value.node in set(model.nodes)]
    runs = [[x.array for x in given]]
    for _ in range(2 if g.variables else 0):
        runs.append([_other(g, array) for array in runs[0]] if g.gen.chance() else runs[0])
    if g.gen.chance(0.3):
        runs += _opened(g, model, runs[0])
    if given and g.gen.chance(0.06):
        runs.insert(g.gen.size(0, len(runs)), _misfit(g, runs[0]))
    return Made(model, runs)


def _misfit(g: Growth, arrays: list[np.ndarray]) -> list[np.ndarray]:
    """Inputs of which one has another size or rank than the others suggest; most graphs must refuse them, and run the inputs after them."""
    changed = g.gen.size(0, len(arrays) - 1)
    array = arrays[changed]
    if array.ndim and g.gen.chance(0.7):
        axis = g.gen.size(0, array.ndim - 1)
        size = g.gen.pick(0, 1, array.shape[axis] + 1, 2 * array.shape[axis])
        other = np.take(array, np.arange(size) % max(1, array.shape[axis]), axis) if array.size else array[None]
    else:
        other = array[None]
    return [other if i == changed else one for i, one in enumerate(arrays)]


def _other(g: Growth, array: np.ndarray) -> np.ndarray:
    """Other floats of the same shape and range; anything else stays as it is, since it may be an index."""
    if array.dtype.kind != "f" or not array.size:
        return array
    return g.gen.rng.permuted(array.ravel()).reshape(array.shape)


def _opened(g: Growth, model: Model, arrays: list[np.ndarray]) -> list[list[np.ndarray]]:
    """Leave some sizes of inputs open; inputs of other sizes for further runs."""
    shapes: dict[str | int, list[int | str]] = {}
    others = list(arrays)
    factor = g.gen.pick(1, 2, 3)
    # OpenVINO refuses a split whose number of outputs is not known.
    splits = [node for node in model.nodes if node.type == "VariadicSplit"]
    lengths = [value.node for node in splits for value in node.inputs[2:] if value is not None]
    for i, array in enumerate(arrays):
        if not array.ndim or g.gen.chance(0.4) or model.parameters[i] in lengths:
            continue
        axes = g.gen.some(range(array.ndim), 1) if g.gen.chance(0.3) else [0]
        shapes[i] = ["?" if axis in axes else size for axis, size in enumerate(array.shape)]
        if array.dtype.kind == "f":
            others[i] = np.repeat(array, factor, axis=axes[0])
    before = {node: node.attributes["shape"] for node in model.parameters}
    try:
        model.reshape({i: ",".join(map(str, shape)) for i, shape in shapes.items()})
    except IrexecError:
        assert before == {node: node.attributes["shape"] for node in model.parameters}, (
            "a reshape that is refused changes nothing"
        )
        return []
    return [others, arrays]
