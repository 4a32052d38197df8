"""Differences as text: a patch, and Markdown."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence

from irexec.display import Column, Content, Table, Text, sections_of
from irexec.display.document import Style
from irexec.ir.order import grouped
from irexec.messages import counted, cut, listed, visible
from irexec.tools.diff.result import Change, Diff, Following, LayerDiff, LayerRef, ValueChange, groups, total
from irexec.tools.finding_formats import relative, workflow_command

_SIGNS: dict[str, tuple[str, Style]] = {"added": ("+", "new"), "removed": ("-", "old"), "changed": (" ", "")}
_ALONE = 3
"""Number of layers with equal changes that are still listed one by one."""
_NAMED, _RENAMED, _METADATA = 3, 10, 6
"""Number of listed layers of a group, of listed renamed layers, and of listed changes of metadata."""
_LONGEST = 160
"""Characters of a text; longer ones are cut in their middle."""


@sections_of.register
def diff_sections(found: Diff, verbose: bool = False, shows_values: bool = False) -> Iterable[Content]:
    """The patch, and a sentence with the number of changes.

    Args:
        found: the diff.
        verbose: equal changes of many layers are not summed up.
        shows_values: there is a table of constants with changed values.
    """
    return [patch_lines(found, verbose), _values_table(found) if shows_values else None, found.summary()]


def _values_table(found: Diff) -> Table | None:
    rows = [
        (str(layer.layer), change.values)
        for layer in found.layers
        for change in layer.changes
        if change.values is not None
    ]
    columns = [
        Column("constant", lambda row: row[0]),
        Column("elements", lambda row: row[1].elements, "number"),
        Column("changed", lambda row: row[1].changed, "number"),
        Column("part", lambda row: f"{row[1].changed / max(1, row[1].elements):.1%}", "number"),
        Column("largest", lambda row: row[1].largest, "number"),
        Column("relative norm", lambda row: row[1].relative, "number"),
        Column("NaN/Inf", lambda row: row[1].not_finite or None, "number"),
    ]
    return Table(columns, rows, what="constants") if rows else None


def patch_lines(found: Diff, verbose: bool = False) -> Iterator[Text]:
    """All lines; equal changes of many layers are summed up unless ``verbose``."""
    if found.is_empty:
        return
    yield Text(f"--- {found.a} ({counted(found.layer_counts[0], 'layer')})", "old")
    yield Text(f"+++ {found.b} ({counted(found.layer_counts[1], 'layer')})", "new")
    if found.model:
        yield Text("@@ model @@", "change")
        yield from _model(found.model, verbose)
    # Shapes and types that follow from a change of their own layer, by the index of the change.
    own = grouped(
        (each.roots[0], each)
        for each in found.following
        if len(each.roots) == 1 and found.layers[each.roots[0]].a == each.layer
    )
    summed = {} if verbose else {group[0]: group for group in groups(found.layers) if len(group) > _ALONE}
    hidden = {index for group in summed.values() for index in group}
    shown = [index for index, layer in enumerate(found.layers) if layer.status != "renamed" and index not in hidden]
    for index, layer in enumerate(found.layers):
        if layer.status == "renamed":
            continue
        if index in summed:
            yield from _group([found.layers[other] for other in summed[index]])
        elif index not in hidden:
            yield from _layer(layer, own.get(index, ()))
    yield from _renamed([layer for layer in found.layers if layer.status == "renamed"], verbose)
    listed = {id(each) for index in shown for each in own.get(index, ())}
    yield from _following(found, listed, verbose)


def _model(changes: Sequence[Change], verbose: bool) -> Iterator[Text]:
    """Changes of the model; of metadata the first ones."""
    plain = [change for change in changes if change.kind != "metadata"]
    metadata = [change for change in changes if change.kind == "metadata"]
    shown = metadata if verbose or len(metadata) <= _METADATA else metadata[: _METADATA - 1]
    yield from _changes([*plain, *shown])
    if len(shown) < len(metadata):
        yield Text(f"  ... and {len(metadata) - len(shown)} more changes of metadata")


def _layer(layer: LayerDiff, following: Iterable[Following]) -> Iterator[Text]:
    if layer.status in ("added", "removed"):
        yield from _single(layer)
        return
    yield Text(f"@@ {_both(layer)} @@", "change")
    yield from _changes(layer.changes)
    for each in following:
        yield Text(f"  {each.change.what}: {each.change.a} -> {each.change.b}")


def _both(layer: LayerDiff) -> str:
    a, b = layer.a, layer.b
    assert a is not None and b is not None
    other = [] if a.id == b.id else [str(b.id)]
    other += [] if a.line == b.line or b.line is None else [f"line {b.line}"]
    return f"{_ref(a)}{' -> ' + ', '.join(other) if other else ''}"


def _ref(layer: LayerRef) -> str:
    parts = [layer.type, layer.version, *([] if layer.line is None else [f"line {layer.line}"])]
    return f"{layer} ({', '.join(filter(None, parts))})"


def _single(layer: LayerDiff) -> Iterator[Text]:
    sign, style = _SIGNS[layer.status]
    yield Text(f"{sign} {_ref(layer.layer)}", style)
    if layer.attributes:
        attributes = " ".join(f'{name}="{value}"' for name, value in layer.attributes.items())
        yield Text(f"{sign}     {attributes}", style)
    for text in layer.inputs:
        yield Text(f"{sign}     {text}", style)
    for source, reader in layer.between[:_NAMED]:
        yield Text(f"{sign}     between {source} and {reader}", style)
    readers = [] if layer.between else list(layer.readers)
    if readers:
        yield Text(f"{sign}     {', '.join(layer.outputs)} to {listed(readers, _NAMED)}", style)


def _changes(changes: Iterable[Change]) -> Iterator[Text]:
    for change in changes:
        if change.values is not None:
            yield Text(f"  {value_text(change.values)}")
            continue
        if change.a is not None:
            yield Text(f"- {change.what}: {cut(change.a, _LONGEST)}", "old")
        if change.b is not None:
            yield Text(f"+ {change.what}: {cut(change.b, _LONGEST)}", "new")


def value_text(values: ValueChange) -> str:
    """The change of values in one line."""
    if not values.changed:
        return f"values: equal{', decompressed' if values.decompressed else ' but for signs of zero or bits of NaN'}"
    note = " (transposed)" if values.transposed else " (decompressed)" if values.decompressed else ""
    return f"values{note}: {', '.join(values.parts())}"


def _group(layers: Sequence[LayerDiff]) -> Iterator[Text]:
    """Many layers with equal changes."""
    first = layers[0]
    title = f"{len(layers):,} x {first.layer.type}"
    sign, style = _SIGNS[first.status]
    if sign == " ":
        yield Text(f"@@ {title} @@", "change")
    else:
        attributes = "".join(f' {name}="{value}"' for name, value in first.attributes.items())
        where = f", each {'put on' if sign == '+' else 'taken from'} an edge" if first.between else ""
        yield Text(f"{sign} {title}{attributes}{where}:", style)
    names = [str(layer.layer) for layer in layers]
    more = [f"... and {len(names) - _NAMED:,} more"] if len(names) > _NAMED else []
    yield from (Text(f"{sign}     {name}", style) for name in names[:_NAMED] + more)
    yield from _changes(c for c in first.changes if c.values is None and c.kind not in ("names", "tensor-names"))
    values = _values(layers)
    if values:
        yield Text(f"  {value_text(total(values))}")
    renamed = sum(any(change.kind == "names" for change in layer.changes) for layer in layers)
    if renamed:
        yield Text(f"  {renamed:,} of them renamed")


def _renamed(layers: Sequence[LayerDiff], verbose: bool) -> Iterator[Text]:
    shown = layers if verbose or len(layers) <= _RENAMED else layers[: _RENAMED // 2]
    for layer in shown:
        names = [f"{change.a} -> {change.b}" for change in layer.changes if change.kind == "names"]
        tensors = [f"{c.what}: {c.a or 'none'} -> {c.b or 'none'}" for c in layer.changes if c.kind == "tensor-names"]
        start = f"{layer.layer.id} {layer.layer.path}" if names else f"{layer.layer}: "
        yield Text(f"~ {start}{'; '.join(names or tensors)} ({layer.layer.type})", "renamed")
        if verbose and names:
            yield from (Text(f"~     {text}", "renamed") for text in tensors)
    if len(shown) < len(layers):
        yield Text(f"~ ... and {len(layers) - len(shown):,} more renamed layers", "renamed")


def _following(found: Diff, listed: Collection[int], verbose: bool) -> Iterator[Text]:
    """Shapes and types that follow from a change of another layer, by the first such change."""
    for root, every in found.followers().items():
        followers = [each for each in every if id(each) not in listed]
        if not followers:
            continue
        cause = "other changes" if root is None else str(found.layers[root].layer)
        number = len(followers)
        what = "1 shape or type follows" if number == 1 else f"{number:,} shapes and types follow"
        yield Text(f"= {what} from {cause}")
        for each in followers if verbose else followers[:_NAMED]:
            yield Text(f"=     {each.layer} {each.change.what}: {each.change.a} -> {each.change.b}")
        if not verbose and number > _NAMED:
            yield Text(f"=     ... and {number - _NAMED:,} more")


_ROWS = 100
"""Rows of a table; GitHub accepts comments of 65,536 characters."""
_LONGEST_TABLE = 120
"""Characters of a cell; longer texts are cut in their middle."""


def markdown(found: Diff) -> str:
    """The diff as a heading, a summary and a table with a row for each change.

    Equal changes of many layers share their rows.
    """
    counts = " → ".join(counted(count, "layer") for count in found.layer_counts)
    lines = [f"### {code(found.a)} → {code(found.b)}", "", f"**{found.summary()}** ({counts})"]
    rows: list[tuple[str, ...]] = []
    rows += [("model", "", "", code(change.what), code(change.a), code(change.b)) for change in found.model]
    for indices in groups(found.layers):
        layers = [found.layers[index] for index in indices]
        for alike in [layers] if len(layers) > _ALONE else [[layer] for layer in layers]:
            rows += _rows(alike)
    for root, followers in found.followers().items():
        layers_text = listed([code(str(each.layer)) for each in followers], _NAMED)
        cause = "other changes" if root is None else code(str(found.layers[root].layer))
        rows.append(("follows", layers_text, "", f"shapes and types, from {cause}", "", ""))
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
    text = cut(visible(text), _LONGEST_TABLE).replace("|", "\\|")
    ticks = "`" * (max((len(run) for run in re.findall("`+", text)), default=0) + 1)
    space = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{ticks}{space}{text}{space}{ticks}"


def _rows(layers: Sequence[LayerDiff]) -> Iterator[tuple[str, ...]]:
    """The rows of layers with equal changes: one for each change, of which only the first names the layers."""
    first = layers[0]
    names, changes = [code(str(layer.layer)) for layer in layers], list(first.changes)
    named = names[0]
    if len(layers) > 1:
        named = f"{len(layers):,} layers: {listed(names, _NAMED)}"
        # None are left of renamed layers.
        changes = [change for change in changes if change.kind not in ("names", "tensor-names")]
    head = (first.status, named, code(first.layer.type))
    if not changes:
        # The attributes of a layer that only one model has, in the column of that model.
        text = code(" ".join(f'{name}="{value}"' for name, value in first.attributes.items()))
        yield (*head, "", *((text, "") if first.status == "removed" else ("", text)))
    for number, change in enumerate(changes):
        cells = (code(change.a), code(change.b))
        if change.values is not None:
            cells = (", ".join(total(_values(layers)).parts()), "")
        yield (*(head if number == 0 else ("", "", "")), code(change.what), *cells)


def _values(layers: Iterable[LayerDiff]) -> list[ValueChange]:
    """The changes of values; a layer has at most one."""
    return [change.values for layer in layers for change in layer.changes if change.values is not None]


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
    a, b = ("nothing" if text is None else cut(text, _LONGEST_TABLE) for text in (change.a, change.b))
    return f"{change.what}: {a} -> {b}"
