"""``extract``: layers of a model as a model of their own, with the inputs that they had in a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from irexec.analysis.model import Model
from irexec.errors import InputError
from irexec.ir.graph import Node
from irexec.ir.order import ancestors, find_layer, find_node, topological
from irexec.tools.reduce.candidate import Candidate, Whole
from irexec.tools.reduce.checks import Files
from irexec.tools.reduce.output import ReductionFiles
from irexec.tools.reduce.recording import BOUNDARY, RecordedRun
from irexec.tools.run.input_sources import GivenInputs, InputSource, external_files, files_read, sample_inputs
from irexec.tools.run.shapes import Shapes, read_with_shapes, reshape


@dataclass(frozen=True)
class Extracted:
    """Layers that were written as a model of their own.

    Attributes:
        model: the model.
        files: the files that were written.
    """

    model: Model
    files: Files


def extract(
    model: Model, layers: Sequence[str], inputs: Mapping[str, Any], *, seed: int = 0, keep_shapes: bool = False
) -> Candidate:
    """Layers of a model as a model of their own; what the others give them become inputs.

    Args:
        model: stays as it is.
        layers: names or ids of layers outside of bodies.
        inputs: an array for each input of the model, by name.
        seed: of random values for what cannot be computed.
        keep_shapes: leave sizes open that are not known before a run; by default they are those of the run.

    Returns:
        The model, and the arrays that its inputs have in a run of the whole model.

    Raises:
        InputError: the layer does not exist, it is an input, output or constant, or nothing is named.
    """
    wanted = _wanted(model, layers)
    arrays = {port.node: inputs[port.name] for port in model.inputs}
    whole = Whole.of(RecordedRun(model, arrays, seed=seed, keep_shapes=keep_shapes))
    positions = {node: i for i, node in enumerate(model.nodes)}
    return whole.candidate(whole.part_of([positions[node] for node in wanted]))


def layers_between(model: Model, starts: Sequence[str], ends: Sequence[str]) -> list[str]:
    """The ids of the layers that compute on the way from some layers to others, these included.

    Args:
        model: the model.
        starts: names or ids; without any, everything that the last layers depend on.
        ends: names or ids; without any, everything that depends on the first layers.

    Raises:
        InputError: the layer does not exist, or no layer is on the way.
    """
    last = [find_node(model, name) for name in ends]
    before = ancestors(last) if last else set(model.nodes)
    reached = {find_node(model, name) for name in starts}
    for node in topological(model)[0] if reached else ():
        if any(value is not None and value.node in reached for value in node.inputs):
            reached.add(node)
    found = [node for node in model.nodes if node in before and (not starts or node in reached)]
    found = [node for node in found if node.type not in BOUNDARY]
    if not found:
        raise InputError(f"no layer that computes is between {' and '.join(map(repr, (*starts, *ends)))}")
    return [str(node.id) for node in found]


def _wanted(model: Model, layers: Sequence[str]) -> list[Node]:
    """The named layers; raises InputError for one that cannot be extracted."""
    found = [find_layer(model, name) for name in layers]
    for graph, node in found:
        if graph is not model or node.type in BOUNDARY:
            where = "is in a body" if graph is not model else f"is a {node.type}"
            raise InputError(f"layer {node.name!r} {where}: only layers that compute, outside of bodies, are extracted")
    if not found:
        raise InputError("no layer is named")
    return [node for _, node in found]


def extract_files(
    path: str, layers: Sequence[str], output: str, *, starts: Sequence[str], ends: Sequence[str],
    weights: str | None, mmap: bool, sources: Sequence[InputSource], shapes: Shapes, seed: int, keep_shapes: bool,
    notify: Callable[[str], None],
) -> Extracted:  # fmt: skip
    """Extract layers of a file, and write the model and its inputs.

    Raises:
        InputError: an argument does not fit the model, or a file of the user would be overwritten.
        ModelError, ConversionError: a file cannot be read or written.
    """
    target, read = ReductionFiles(output), files_read(path, weights, sources)
    target.check(read)
    model = read_with_shapes(path, weights, shapes, mmap=mmap, given=GivenInputs(sources))
    target.check(read | external_files(model))
    # Before inputs are made.
    if starts or ends:
        layers = [*layers, *layers_between(model, starts, ends)]
    _wanted(model, layers)
    reshape(model, shapes)
    arrays = sample_inputs(sources, model.inputs, seed, notify)
    made = extract(model, layers, arrays, seed=seed, keep_shapes=keep_shapes)
    target.write(made)
    return Extracted(made.model, target.files(made))
