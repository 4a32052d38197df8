"""A model as a Python script that makes it again."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from irexec import io
from irexec import opset as functions_of_operations
from irexec.analysis.matching.keys import attribute_values
from irexec.analysis.model import Model
from irexec.analysis.shape_inference import infer_shapes
from irexec.api import ModelLike, as_model
from irexec.errors import InputError, IrexecError, ModelError
from irexec.io.files import replacing
from irexec.ir.graph import Graph, Input, Node, Value
from irexec.records import Record
from irexec.tools.diff.changes import metadata_changes
from irexec.tools.script.expressions import quoted
from irexec.tools.script.source import Functions, in_lines
from irexec.tools.script.statements import Weights, check_graph, creation_order, fact_text


@dataclass(frozen=True)
class Script(Record):
    """A script that was written.

    Attributes:
        path: the script.
        weights: the .npz with its constants; None if all of them are in the script.
        lines: number of lines of the script.
        layers: number of layers of the model, those of bodies included.
        blocks: number of functions for repeated parts.
        constants: number of constants in the .npz.
    """

    path: str
    weights: str | None
    lines: int
    layers: int
    blocks: int
    constants: int


def script(model: ModelLike, path: str | Path, *, overwrite: bool = False) -> Script:
    """Write a model as a Python script, and its larger constants as the .npz beside it.

    The script makes the same model again: ``diff`` finds no difference. It is executed once in memory before it is
    written.

    Args:
        model: a model, or what read_model takes.
        path: the .py to write.
        overwrite: whether files that exist are replaced.

    Raises:
        InputError: the path does not end in .py, its folder does not exist, or a file exists.
        ModelError: the model is damaged, has cycles, or cannot be made again.
    """
    model = as_model(model)
    target = Path(path)
    if target.suffix != ".py":
        raise InputError(f"{str(path)!r} does not end in .py")
    if not target.parent.is_dir():
        raise InputError(f"{target}: the folder {target.parent} does not exist")
    weights = Weights()
    written = _Written(model, weights)
    data = target.with_suffix(".npz")
    text = written.text(data.name)
    files = [target] if not len(weights) else [data, target]
    for file in () if overwrite else files:
        if file.exists():
            raise InputError(f"{file} exists: --overwrite, in Python overwrite=True, replaces it")
    try:
        with replacing(*files) as opened:
            if len(weights):
                weights.write(opened[0])
            opened[-1].write(text.encode("utf-8"))
    except OSError as error:
        raise ModelError(f"{target}: cannot be written: {error.strerror or error}") from None
    counts = text.count("\n"), sum(1 for _ in model.walk()), len(written.functions.blocks), len(weights)
    return Script(str(target), str(data) if len(weights) else None, *counts)


class _Written:
    """The text of a script, which has been executed once."""

    def __init__(self, model: Model, weights: Weights) -> None:
        check_graph(model)
        self._model, self._weights = model, weights
        failures = frozenset(infer_shapes(model, tolerant=True).failures)
        self.functions = Functions(weights, failures)
        self._lines = [*self.functions.model(model), "    return made"]
        repairs = [*_grouped(_repairs("nodes", model, self._made(self._source())))]
        if model.version != 11:
            repairs.append(f"    made.version = {model.version}")
        if repairs:
            self._lines[-1:] = ["    nodes = made.nodes", *repairs, "    return made"]
            left = list(_repairs("nodes", model, self._made(self._source())))
            if left:
                raise ModelError(f"the model cannot be made again: {left[0].strip()}")
        else:
            del self._lines[-1]
            last = max(i for i, line in enumerate(self._lines) if line.startswith(_MADE))
            self._lines[last] = self._lines[last].replace(_MADE, _RETURN, 1)
        self._has_metadata = any("set_metadata(" in line for line in repairs)

    def _source(self) -> str:
        """The functions, without imports and helpers that read files."""
        parts = [*self.functions.bodies, *self.functions.blocks, "\n".join(self._lines)]
        return "\n\n\n".join(parts) + "\n"

    def _made(self, source: str) -> Model:
        """The model that the script makes."""
        scope: dict[str, Any] = {"opset": functions_of_operations, "Model": Model, "weights": self._weights}
        scope["set_metadata"] = io.set_metadata
        exec(compile(_HELPERS, "<helpers>", "exec"), scope)
        try:
            exec(compile(source, "<script>", "exec"), scope)
            made = scope["model"]()
        except IrexecError as error:
            raise ModelError(f"the model cannot be made again: {error}") from error
        assert isinstance(made, Model)
        return made

    def text(self, data: str) -> str:
        """The whole script."""
        source = self._source()
        name = quoted(self._model.path.name if self._model.path is not None else self._model.name)
        use = "python SCRIPT.py OUTPUT.xml writes the model"
        head = [f"# The model {name} in Python, made by irexec script: {use}.", "import sys"]
        if len(self._weights):
            head += ["from pathlib import Path", "", "import numpy as np", ""]
        else:
            head.append("")
        head.append("from irexec import Model, opset")
        if self._has_metadata:
            head.append("from irexec.io import set_metadata")
        if len(self._weights):
            head += ["", f"weights = np.load(Path(__file__).with_name({quoted(data)}))"]
            head += [text for name, text in _HELPER.items() if f"{name}(" in source]
        return "\n".join([*head, "", "", source, "", *_MAIN]) + "\n"


_MAIN = (
    'if __name__ == "__main__":',
    "    if len(sys.argv) != 2:",
    '        sys.exit(f"usage: python {sys.argv[0]} OUTPUT.xml")',
    "    model().save(sys.argv[1])",
)

_MADE, _RETURN = "    made = Model(", "    return Model("

_HELPER = {
    "weight": """

def weight(name, **more):
    return opset.constant(weights[name], name=name, **more)""",
    "packed": """

def packed(name, element, shape, **more):
    return opset.packed(weights[name], element, shape, name=name, **more)""",
}
_HELPERS = "\n".join(_HELPER.values())


def _repairs(path: str, original: Graph, made: Graph) -> Iterator[str]:
    """The statements after which the model that a script makes is the original: names that are not unique, versions,
    declared shapes, metadata."""
    order = creation_order(original)
    assert [node.type for node in order] == [node.type for node in made.nodes]
    yield from _metadata(path.rpartition(".")[0] or "made", original, made)
    for i, (node, fresh) in enumerate(zip(order, made.nodes, strict=True)):
        yield from _node_repairs(f"{path}[{i}]", node, fresh)


def _grouped(lines: Iterable[str]) -> Iterator[str]:
    """The statements, those that differ in the index of the layer alone as a loop."""
    groups: dict[str, list[str]] = {}
    for line in lines:
        found = _INDEX.match(line)
        template = line if found is None else f"{line[: found.start(1)]}i{line[found.end(1) :]}"
        groups.setdefault(template, []).append("" if found is None else found[1])
    for template, indices in groups.items():
        if len(indices) > 2:
            yield from in_lines(4, f"for i in ({', '.join(indices)}):")
            yield f"    {template}"
        else:
            yield from (template.replace("nodes[i]", f"nodes[{index}]", 1) if index else template for index in indices)


_INDEX = re.compile(r"    (?:set_metadata\()?nodes\[(\d+)\]")


def _node_repairs(path: str, node: Node, fresh: Node) -> Iterator[str]:
    for name in ("name", "version"):
        if getattr(node, name) != getattr(fresh, name):
            yield f"    {path}.{name} = {quoted(getattr(node, name))}"
    mine, theirs = attribute_values(node), attribute_values(fresh)
    for name in node.attributes:
        if mine.get(name) != theirs.get(name):
            yield f"    {path}.attributes[{quoted(name)}] = {quoted(node.attributes[name])}"
    for i, (value, other) in enumerate(zip(node.outputs, fresh.outputs, strict=True)):
        if fact_text(value) != fact_text(other):
            text = fact_text(value)
            declared = "None" if text is None else f"opset.declared({quoted(text)})"
            yield f"    {path}.outputs[{i}].fact = {declared}"
        if set(value.names) != set(other.names):
            yield f"    {path}.outputs[{i}].names = [{', '.join(map(quoted, value.names))}]"
        yield from _metadata(f"{path}.outputs[{i}]", value, other)
    for i, (port, one) in enumerate(zip(node.ports, fresh.ports, strict=True)):
        yield from _metadata(f"{path}.ports[{i}]", port, one)
    yield from _metadata(path, node, fresh)
    for name, body in node.bodies.items():
        yield from _repairs(f"{path}.bodies[{quoted(name)}].graph.nodes", body.graph, fresh.bodies[name].graph)


_Part = Graph | Node | Value | Input


def _metadata(path: str, original: _Part, made: _Part) -> Iterator[str]:
    if next(metadata_changes(original, made), None) is not None:
        arguments = [f"{name}={value!r}" for name, value in io.metadata(original).items()]
        yield f"    set_metadata({', '.join([path, *arguments])})"
