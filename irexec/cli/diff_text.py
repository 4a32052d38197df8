"""A diff as text that reads like a patch: each line with the style that a terminal gives it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from irexec.cli import render
from irexec.messages import counted, cut, listed
from irexec.tools.diff.groups import groups, total
from irexec.tools.diff.result import Change, Diff, Following, LayerDiff, LayerRef, ValueChange

Line = tuple[str, str]
"""A style and a text."""

_HEAD, _OLD, _NEW, _SAME, _NAME = "bold cyan", "red", "green", "", "yellow"
_ALONE = 3
"""Layers with equal changes that are still listed one by one."""
_NAMED, _RENAMED, _METADATA = 3, 10, 6
"""Layers of a group that are named; renamed layers, and changes of metadata, that are listed."""
_LONGEST = 160
"""Characters of a text; longer ones are cut in their middle."""


def diff_lines(found: Diff, verbose: bool) -> Iterator[Line]:
    """All lines; equal changes of many layers are summed up unless ``verbose``."""
    if found.is_empty:
        return
    yield _OLD, f"--- {found.a} ({counted(found.layer_counts[0], 'layer')})"
    yield _NEW, f"+++ {found.b} ({counted(found.layer_counts[1], 'layer')})"
    if found.model:
        yield _HEAD, "@@ model @@"
        yield from _model(found.model, verbose)
    own = _own(found)
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


def _model(changes: Sequence[Change], verbose: bool) -> Iterator[Line]:
    """Changes of the model; of metadata the first ones."""
    plain = [change for change in changes if change.kind != "metadata"]
    metadata = [change for change in changes if change.kind == "metadata"]
    shown = metadata if verbose or len(metadata) <= _METADATA else metadata[: _METADATA - 1]
    yield from _changes([*plain, *shown])
    if len(shown) < len(metadata):
        yield _SAME, f"  ... and {len(metadata) - len(shown)} more changes of metadata"


def _own(found: Diff) -> dict[int, list[Following]]:
    """Shapes and types that follow from a change of their own layer, by the position of the change."""
    own: dict[int, list[Following]] = {}
    for each in found.following:
        if len(each.roots) == 1 and found.layers[each.roots[0]].a == each.layer:
            own.setdefault(each.roots[0], []).append(each)
    return own


def _layer(layer: LayerDiff, following: Iterable[Following]) -> Iterator[Line]:
    if layer.status in ("added", "removed"):
        yield from _single(layer)
        return
    yield _HEAD, f"@@ {_both(layer)} @@"
    yield from _changes(layer.changes)
    for each in following:
        yield _SAME, f"  {each.change.what}: {each.change.a} -> {each.change.b}"


def _both(layer: LayerDiff) -> str:
    a, b = layer.a, layer.b
    assert a is not None and b is not None
    other = [] if a.id == b.id else [str(b.id)]
    other += [] if a.line == b.line or b.line is None else [f"line {b.line}"]
    return f"{_ref(a)}{' -> ' + ', '.join(other) if other else ''}"


def _ref(layer: LayerRef) -> str:
    parts = [layer.type, layer.version, *([] if layer.line is None else [f"line {layer.line}"])]
    return f"{layer} ({', '.join(filter(None, parts))})"


def _single(layer: LayerDiff) -> Iterator[Line]:
    sign, style = ("+", _NEW) if layer.status == "added" else ("-", _OLD)
    yield style, f"{sign} {_ref(layer.layer)}"
    if layer.attributes:
        for text in render.fill((f'{name}="{value}"' for name, value in layer.attributes.items()), f"{sign}     "):
            yield style, text
    for text in layer.inputs:
        yield style, f"{sign}     {text}"
    for source, reader in layer.between[:_NAMED]:
        yield style, f"{sign}     between {source} and {reader}"
    readers = [] if layer.between else list(layer.readers)
    if readers:
        yield style, f"{sign}     {', '.join(layer.outputs)} to {listed(readers, _NAMED)}"


def _changes(changes: Iterable[Change]) -> Iterator[Line]:
    for change in changes:
        if change.values is not None:
            yield _SAME, f"  {value_text(change.values)}"
            continue
        if change.a is not None:
            yield _OLD, f"- {change.what}: {cut(change.a, _LONGEST)}"
        if change.b is not None:
            yield _NEW, f"+ {change.what}: {cut(change.b, _LONGEST)}"


def value_text(values: ValueChange) -> str:
    """The change of values in one line."""
    if not values.changed:
        return (
            "values: equal but for signs of zero or bits of NaN"
            if not values.decompressed
            else "values: equal, decompressed"
        )
    parts = [f"{values.changed:,} of {values.elements:,} changed"]
    if values.largest is not None:
        parts.append(f"by at most {render.number(values.largest)}")
    if values.relative is not None:
        parts.append(f"relative norm {render.number(values.relative)}")
    if values.not_finite:
        parts.append(f"{values.not_finite:,} with NaN or infinity")
    note = " (transposed)" if values.transposed else " (decompressed)" if values.decompressed else ""
    return f"values{note}: {', '.join(parts)}"


def _group(layers: Sequence[LayerDiff]) -> Iterator[Line]:
    """Many layers with equal changes."""
    first = layers[0]
    title = f"{len(layers):,} x {first.layer.type}"
    sign, style = {"added": ("+", _NEW), "removed": ("-", _OLD)}.get(first.status, (" ", _SAME))
    if sign == " ":
        yield _HEAD, f"@@ {title} @@"
    else:
        attributes = "".join(f' {name}="{value}"' for name, value in first.attributes.items())
        where = f", each {'put on' if sign == '+' else 'taken from'} an edge" if first.between else ""
        yield style, f"{sign} {title}{attributes}{where}:"
    names = [str(layer.layer) for layer in layers]
    more = [f"... and {len(names) - _NAMED:,} more"] if len(names) > _NAMED else []
    yield from ((style, f"{sign}     {name}") for name in names[:_NAMED] + more)
    yield from _changes(c for c in first.changes if c.values is None and c.kind not in ("names", "tensor-names"))
    values = [change.values for layer in layers for change in layer.changes if change.values is not None]
    if values:
        yield _SAME, f"  {value_text(total(values))}"
    renamed = sum(any(change.kind == "names" for change in layer.changes) for layer in layers)
    if renamed:
        yield _SAME, f"  {renamed:,} of them renamed"


def _renamed(layers: Sequence[LayerDiff], verbose: bool) -> Iterator[Line]:
    shown = layers if verbose or len(layers) <= _RENAMED else layers[: _RENAMED // 2]
    for layer in shown:
        names = [f"{change.a} -> {change.b}" for change in layer.changes if change.kind == "names"]
        tensors = [f"{c.what}: {c.a or 'none'} -> {c.b or 'none'}" for c in layer.changes if c.kind == "tensor-names"]
        start = f"{layer.layer.id} {layer.layer.path}" if names else f"{layer.layer}: "
        yield _NAME, f"~ {start}{'; '.join(names or tensors)} ({layer.layer.type})"
        if verbose and names:
            yield from ((_NAME, f"~     {text}") for text in tensors)
    if len(shown) < len(layers):
        yield _NAME, f"~ ... and {len(layers) - len(shown):,} more renamed layers"


def _following(found: Diff, listed: Collection[int], verbose: bool) -> Iterator[Line]:
    """Shapes and types that follow from a change of another layer, by the first such change."""
    by_root: dict[int | None, list[Following]] = {}
    for each in found.following:
        if id(each) not in listed:
            by_root.setdefault(each.roots[0] if each.roots else None, []).append(each)
    for root, followers in by_root.items():
        cause = "other changes" if root is None else str(found.layers[root].layer)
        yield _SAME, f"= {_followers(len(followers))} from {cause}"
        for each in followers if verbose else followers[:_NAMED]:
            yield _SAME, f"=     {each.layer} {each.change.what}: {each.change.a} -> {each.change.b}"
        if not verbose and len(followers) > _NAMED:
            yield _SAME, f"=     ... and {len(followers) - _NAMED:,} more"


def _followers(number: int) -> str:
    return "1 shape or type follows" if number == 1 else f"{number:,} shapes and types follow"
