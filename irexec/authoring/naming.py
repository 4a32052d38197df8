"""Renaming layers and tensors."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from irexec.authoring.editing import Editing
from irexec.errors import InputError
from irexec.io.payload import output_names, set_output_names
from irexec.ir.find import all_names, similar
from irexec.ir.graph import Graph, graphs

Renamed = Callable[[str], str]
_REGULAR = "re:"


def rename(editing: Editing, old: str, new: str) -> None:
    """Rename every layer and tensor that ``old`` names; see Editor.rename."""
    if not new:
        raise InputError(f"{old!r} cannot be renamed to the empty name")
    model = editing.model
    found = [graph for graph in graphs(model) if old in all_names(graph)]
    if found:
        change: Renamed = lambda name: new if name == old else name  # noqa: E731
    elif old.startswith(_REGULAR):
        change = _by_expression(old, new)
    elif "*" in old or "?" in old:
        change = _by_wildcards(old, new)
    else:
        raise InputError(f"there is no layer or tensor {old!r}{similar(old, all_names(model))}")
    changes = [_Renaming.of(graph, change) for graph in graphs(model)]
    if not any(one.changes for one in changes):
        raise InputError(f"no name of a layer or tensor is changed by {old!r} = {new!r}")
    for one in changes:
        one.check()
        one.apply(change)


def _by_expression(old: str, new: str) -> Renamed:
    try:
        pattern = re.compile(old.removeprefix(_REGULAR))
        pattern.sub(new, "")
    except (re.error, IndexError) as error:
        raise InputError(f"{old!r} = {new!r} is not a regular expression and its replacement: {error}") from None
    return lambda name: pattern.sub(new, name, count=1)


def _by_wildcards(old: str, new: str) -> Renamed:
    wild = sum(old.count(character) for character in "*?")
    if new.count("*") > wild:
        raise InputError(f"{new!r} has more asterisks than {old!r} has wildcards")
    parts = re.split(r"([*?])", old)
    pattern = re.compile("".join({"*": "(.*)", "?": "(.)"}.get(part, re.escape(part)) for part in parts), re.DOTALL)

    def change(name: str) -> str:
        found = pattern.fullmatch(name)
        if found is None:
            return name
        texts = iter(found.groups())
        return re.sub(r"\*", lambda _: next(texts), new)

    return change


@dataclass
class _Renaming:
    """The new names of one graph: layers first, then tensors."""

    graph: Graph
    layers: list[tuple[str, str]]
    tensors: list[tuple[str, str]]

    @staticmethod
    def of(graph: Graph, change: Renamed) -> _Renaming:
        layers = [(node.name, change(node.name)) for node in graph.nodes]
        names = [name for node in graph.nodes for value in node.outputs for name in value.names]
        return _Renaming(graph, layers, [(name, change(name)) for name in names])

    @property
    def changes(self) -> bool:
        return any(old != new for old, new in (*self.layers, *self.tensors))

    def check(self) -> None:
        """Raise InputError where two layers, or two tensors, would come to have the same name, or one no name."""
        for kind, pairs in (("layer", self.layers), ("tensor", self.tensors)):
            # A file may have used a name twice before.
            owners: dict[str, str] = {}
            for old, new in dict(pairs).items():
                if not new:
                    raise InputError(f"{kind} {old!r} would have no name")
                other = owners.setdefault(new, old)
                if other != old:
                    raise InputError(_clash(kind, *((old, other) if other == new else (other, old)), new))

    def apply(self, change: Renamed) -> None:
        for node in self.graph.nodes:
            node.name = change(node.name)
            names = output_names(node) if node.type == "Result" else None
            if names is not None and (changed := list(map(change, names))) != names:
                set_output_names(node, changed)
            for value in node.outputs:
                if value.names:
                    value.names = list(map(change, value.names))


def _clash(kind: str, one: str, other: str, new: str) -> str:
    """The message for two names of which both would be ``new``."""
    reason = f"a {kind} has that name" if other == new else f"{kind} {other!r} would have that name, too"
    return f"{kind} {one!r} cannot be called {new!r}: {reason}"
