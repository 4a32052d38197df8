"""A diff as Markdown, for a comment on a pull request, and as annotations of GitHub."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from irexec.messages import counted, cut, listed, visible
from irexec.tools.diff.result import Change, Diff, LayerDiff, ValueChange, groups, total
from irexec.tools.finding_formats.github import workflow_command
from irexec.tools.finding_formats.locations import relative

_ROWS = 100
"""Rows of a table; GitHub accepts comments of 65,536 characters."""
_LONGEST = 120
"""Characters of a cell; longer texts are cut in their middle."""
_ALONE, _NAMED = 3, 3
"""Layers with equal changes that have rows of their own, and layers of a group that are named."""


def markdown(found: Diff) -> str:
    """The diff as a heading, a summary and a table with a row for each change.

    Equal changes of many layers share their rows.
    """
    counts = " → ".join(counted(count, "layer") for count in found.layer_counts)
    lines = [f"### {code(found.a)} → {code(found.b)}", "", f"**{found.summary()}** ({counts})"]
    rows = [*_model_rows(found), *_layer_rows(found), *_following_rows(found)]
    if rows:
        lines += ["", "| | layer | type | change | A | B |", "| --- | --- | --- | --- | --- | --- |"]
        lines += [f"| {' | '.join(row)} |" for row in rows[:_ROWS]]
    if len(rows) > _ROWS:
        lines += ["", f"... and {len(rows) - _ROWS:,} more rows, which `irexec diff` lists"]
    return "\n".join(lines) + "\n"


def code(text: str | None) -> str:
    """A text as a code span in a cell of a table, in which nothing is a link, a mention or markup."""
    if text is None or not text:
        return ""
    text = cut(visible(text), _LONGEST).replace("|", "\\|")
    ticks = "`" * (max((len(run) for run in re.findall("`+", text)), default=0) + 1)
    space = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{ticks}{space}{text}{space}{ticks}"


def _model_rows(found: Diff) -> Iterator[tuple[str, ...]]:
    for change in found.model:
        yield "model", "", "", code(change.what), code(change.a), code(change.b)


def _layer_rows(found: Diff) -> Iterator[tuple[str, ...]]:
    for indices in groups(found.layers):
        layers = [found.layers[index] for index in indices]
        if len(layers) > _ALONE:
            yield from _rows(layers)
        else:
            for layer in layers:
                yield from _rows([layer])


def _rows(layers: Sequence[LayerDiff]) -> Iterator[tuple[str, ...]]:
    """The rows of layers with equal changes: one for each change, of which only the first names the layers."""
    first = layers[0]
    names = [code(str(layer.layer)) for layer in layers]
    head = (first.status, names[0], code(first.layer.type))
    if len(layers) > 1:
        head = (first.status, f"{len(layers):,} layers: {listed(names, _NAMED)}", code(first.layer.type))
    changes = [] if len(layers) > 1 and first.status == "renamed" else list(first.changes)
    if len(layers) > 1:
        changes = [change for change in changes if change.kind not in ("names", "tensor-names")]
    if not changes:
        yield (*head, "", *_attributes(first))
    for number, change in enumerate(changes):
        cells = (code(change.a), code(change.b))
        if change.values is not None:
            cells = (", ".join(total([_of(layer, change) for layer in layers]).parts()), "")
        yield (*(head if number == 0 else ("", "", "")), code(change.what), *cells)


def _attributes(layer: LayerDiff) -> tuple[str, str]:
    """The attributes of a layer that only one model has, in the column of that model."""
    text = code(" ".join(f'{name}="{value}"' for name, value in layer.attributes.items()))
    return (text, "") if layer.status == "removed" else ("", text)


def _of(layer: LayerDiff, change: Change) -> ValueChange:
    """The change of values of a layer of a group in which ``change`` is that of the first layer."""
    values = next((each.values for each in layer.changes if each.values is not None), None)
    assert values is not None, change
    return values


def _following_rows(found: Diff) -> Iterator[tuple[str, ...]]:
    """A row for the shapes and types that follow from each change."""
    for root, followers in found.followers().items():
        names = [code(str(each.layer)) for each in followers]
        cause = "other changes" if root is None else code(str(found.layers[root].layer))
        yield "follows", listed(names, _NAMED), "", f"shapes and types, from {cause}", "", ""


def github_notices(found: Diff) -> Iterator[str]:
    """A workflow command of GitHub for each changed layer: a notice at its line in B, or in A if B does not have it."""
    for change in found.model:
        yield workflow_command("notice", {"file": str(relative(found.b)), "title": "model changed"}, _sentence(change))
    for layer in found.layers:
        side, path = (layer.a, found.a) if layer.b is None else (layer.b, found.b)
        assert side is not None
        line = {} if side.line is None else {"line": str(side.line)}
        properties = {"file": str(relative(path)), **line, "title": f"{side} ({side.type}) {layer.status}"}
        text = "; ".join(map(_sentence, layer.changes)) or f"the layer was {layer.status}"
        yield workflow_command("notice", properties, text)


def _sentence(change: Change) -> str:
    if change.values is not None:
        return f"values: {', '.join(change.values.parts())}"
    a, b = ("nothing" if text is None else cut(text, _LONGEST) for text in (change.a, change.b))
    return f"{change.what}: {a} -> {b}"
