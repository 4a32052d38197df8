"""A comparison as a drawing: two graphs side by side, or one with two tensors for each layer.

The page is made of the pages of both graphs (svg.py); beside.js keeps them together. The rows of a comparison are
``PairedTensor``; ``compare``, ``judge`` and ``diff`` each make these of their own results.
"""

from __future__ import annotations

import base64
import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from irexec.display.hypertext import Html, data, element, joined, page
from irexec.io.writer import check_file
from irexec.ir.graph import ModelGraph, Node
from irexec.ir.order import grouped
from irexec.messages import cut, visible
from irexec.tools.arrays.statistics import Statistics, statistics
from irexec.tools.graph.draw import GraphFile, draw, format_of, graph_file
from irexec.tools.graph.drawing import STATES, Drawing, first_of
from irexec.tools.graph.svg import graph_section, page_file, script, svg_and_size, svg_document

_BINS, _SIDE, _FIRST, _WORST = 32, 64, 6, 4
"""Bars of a histogram, pixels of an image, and elements that are listed: the first, and those that differ most."""
_IMAGES = 300
"""Tensors of a page that have images."""
_SVG_BOXES, _SVG_HOPS = 60, 5
"""Layers of an image; of a larger model it has those around the first difference."""


@dataclass(frozen=True, eq=False)
class PairedTensor:
    """The state of a tensor, or of a layer, in a comparison.

    Attributes:
        a, b: the layers; None on the side that has none. Of a single graph all are layers of ``b``.
        state: one of STATES.
        facts: names and texts.
        snr: in decibels; infinite where both are equal, None where there is none.
        tensors: see ``tensors``; None where no values are known.
    """

    a: Node | None
    b: Node | None
    state: str
    facts: tuple[tuple[str, str], ...] = ()
    snr: float | None = None
    tensors: Mapping[str, Any] | None = None


@dataclass(frozen=True, eq=False)
class Beside:
    """A comparison to draw.

    Attributes:
        title: the verdict in a sentence.
        models: A and B with their labels; B alone where both are one model, or A is a recording.
        rows: the pairs.
        states: the titles of the states in use; the last is that of layers without a row.
        first: the index of the first row that differs; None without one.
    """

    title: str
    models: tuple[tuple[str, ModelGraph], ...]
    rows: Sequence[PairedTensor]
    states: Mapping[str, str]
    first: int | None = None

    def drawings(self) -> list[Drawing]:
        """The graphs, coloured by state."""
        return [self._marked(side, draw(model, cluster=None)) for side, (_, model) in enumerate(self.models)]

    def _marked(self, side: int, drawing: Drawing) -> Drawing:
        rows = grouped((self.layer(row, side), row) for row in self.rows)
        layers = []
        for layer, node in zip(drawing.layers, self.models[side][1].walk(), strict=True):
            own = rows.get(node, ())
            state = first_of(self.states, {row.state for row in own}) or ""
            ratios = [row.snr for row in own if row.snr is not None and row.state in ("differs", "follows")]
            badge = f"{round(min(ratios))} dB" if ratios and np.isfinite(min(ratios)) else ""
            layers.append(replace(layer, state=state, badge=badge))
        return replace(drawing, name=self.labels[side], layers=tuple(layers), states=dict(self.states))

    @property
    def labels(self) -> list[str]:
        """The labels without their folders, after the letters of two sides."""
        short = [re.sub(r"^.*[/\\](?=[^/\\]+\.\w+)", "", label) for label, _ in self.models]
        if len(short) == 2 and short[0] == short[1]:
            short = [label for label, _ in self.models]
        return [f"{'AB'[i]}: {label}" for i, label in enumerate(short)] if len(short) == 2 else short

    def layer(self, row: PairedTensor, side: int) -> Node | None:
        """The layer of a row on a side."""
        return row.a if len(self.models) == 2 and side == 0 else row.b


def check_picture(path: str, read: Mapping[str, str]) -> None:
    """Raise InputError if a picture cannot be written; see ``check_graph_file``."""
    format_of(path, "a comparison is drawn", ("html", "svg"))
    check_file("-o", Path(path), read)


def write_picture(path: str, beside: Beside) -> GraphFile:
    """Write a comparison as a page (.html) or an image (.svg), whole or not at all.

    Raises:
        ModelError: the file cannot be written; what was there before is as it was.
    """
    format = format_of(path)
    return graph_file(path, format, (beside_svg if format == "svg" else beside_page)(beside).encode())


def beside_page(beside: Beside) -> str:
    """A whole document, which needs no other file and no network."""
    numbers: list[dict[Node | None, int]] = [
        {node: i for i, node in enumerate(model.walk())} for _, model in beside.models
    ]
    document = {
        "states": [[title, *STATES[name]] for name, title in beside.states.items()],
        "first": beside.first,
        "rows": [_row(row, numbers, list(beside.states)) for row in beside.rows],
    }
    sections = [
        graph_section(drawing, id=f"graph{i}", is_whole_page=True) for i, drawing in enumerate(beside.drawings())
    ]
    body = element(
        "div",
        _head(beside),
        *sections,
        element("aside", class_="details", hidden=True, aria_label="selected pair", tabindex=-1),
        data("beside-data", document),
        class_="irexec-graph irexec-beside",
        data_ready="yes",
        style=f"--graphs: {len(sections)}",
    )
    styles = element("style", page_file("page.css"), page_file("beside.css"))
    title = visible(cut(", ".join(beside.labels), 200))
    return page(title, joined(styles, body, element("script", script("beside"))))


def _head(beside: Beside) -> Html:
    def button(go: str, text: str, label: str, class_: str | None = None) -> Html:
        return element("button", text, type="button", data_go=go, title=label, aria_label=label, class_=class_)

    title = element("p", visible(cut(beside.title, 600)), class_="verdict")
    sides = [button(f"show{i}", side, f"show {side}", "narrow") for i, side in enumerate("AB")]
    colours = [element("option", "colours: state", value="state")]
    if any(row.snr is not None for row in beside.rows):
        colours.append(element("option", "colours: SNR", value="snr"))
    choice = element("select", colours, aria_label="colours")
    steps = [
        button("first", "First", "the first difference"),
        button("previous", "‹", "the difference before (p)"),
        button("next", "›", "the next difference (n)"),
    ]
    counts = element("span", class_="counts")
    shown = title, sides if len(beside.models) == 2 else (), counts, choice, steps if beside.first is not None else ()
    return element("div", shown, class_="head")


def _row(row: PairedTensor, numbers: Sequence[Mapping[Node | None, int]], names: Sequence[str]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "a": None if len(numbers) == 1 else numbers[0].get(row.a),
        "b": numbers[-1].get(row.b),
        "s": names.index(row.state),
        "f": [[name, visible(cut(text, 600))] for name, text in row.facts],
    }
    if row.state not in ("agrees", "blind", "unpaired"):
        found["d"] = 1
    if row.snr is not None:
        found["q"] = round(row.snr, 1) if np.isfinite(row.snr) else None
    if row.tensors is not None:
        found["v"] = row.tensors
    return found


def tensors(
    labels: Sequence[str],
    a: np.ndarray | None,
    b: np.ndarray | None,
    interval: tuple[np.ndarray, np.ndarray] | None = None,
    *,
    is_drawn: bool = False,
) -> dict[str, Any] | None:
    """Two tensors as a page shows them: statistics, histograms over one range, elements, and images of one plane.

    Args:
        labels: the names of both.
        a, b: the tensors; None for one that is not known.
        interval: the smallest and largest correct values of ``b``, element by element.
        is_drawn: True for images, where both have at least 4 rows and columns.
    """
    pairs = [(label, array) for label, array in zip(labels, (a, b), strict=True) if array is not None]
    if not pairs or any(array.dtype.kind not in "biuf" or not array.size for _, array in pairs):
        return None
    both = [np.asarray(array, np.float64) for _, array in pairs]
    numbers = [statistics(array) for array in both]
    found: dict[str, Any] = {"labels": [label for label, _ in pairs], "stats": _stats(both, numbers)}
    low = min((one.min for one in numbers if one.min is not None), default=0.0)
    high = max((one.max for one in numbers if one.max is not None), default=0.0)
    if np.finfo(np.float64).tiny * _BINS < high - low < np.inf:
        found["counts"] = [np.histogram(array, _BINS, (low, high))[0].tolist() for array in both]
        found["low"], found["high"] = f"{low:.6g}", f"{high:.6g}"
    gap = None
    if len(both) == 2 and both[0].shape == both[1].shape:
        with np.errstate(invalid="ignore", over="ignore"):
            gap = np.nan_to_num(np.abs(both[0] - both[1]), nan=np.inf, posinf=np.inf)
        gap = np.where((both[0] == both[1]) | (np.isnan(both[0]) & np.isnan(both[1])), 0.0, gap)
        if is_drawn and gap.ndim >= 2 and min(gap.shape[-2:]) >= 4 and gap.any():
            found["image"] = _image(both, gap)
    if len({array.shape for array in both}) == 1:
        found["values"] = _elements(both, gap, interval)
    return found


def _stats(arrays: Sequence[np.ndarray], numbers: Sequence[Statistics]) -> list[list[str]]:
    rows = [["shape", *(str(list(array.shape)) for array in arrays)]]
    for name in ("min", "max", "mean", "std"):
        values = [getattr(one, name) for one in numbers]
        rows.append([name, *("" if value is None else f"{value:.6g}" for value in values)])
    if any(one.not_finite for one in numbers):
        rows.append(["NaN, infinite", *(f"{one.not_finite:,}" for one in numbers)])
    return rows


def _elements(
    both: Sequence[np.ndarray], gap: np.ndarray | None, interval: tuple[np.ndarray, np.ndarray] | None
) -> list[list[str]]:
    """The elements that differ most, then the first ones: position, values, interval."""
    size, shape = both[0].size, both[0].shape
    chosen: list[int] = []
    if gap is not None and gap.any():
        flat = gap.reshape(-1)
        most = np.argpartition(-flat, min(_WORST, size) - 1)[:_WORST]
        chosen = [int(i) for i in most[np.argsort(-flat[most], kind="stable")] if flat[i]]
    rows = []
    for i in dict.fromkeys([*chosen, *range(min(_FIRST, size))]):
        at = np.unravel_index(i, shape)
        row = [str([int(k) for k in at]), *(f"{array[at]:.8g}" for array in both)]
        if interval is not None and interval[0].shape == shape:
            row.append(f"{interval[0][at]:.8g} to {interval[1][at]:.8g}")
        rows.append(row)
    return rows


def _image(both: Sequence[np.ndarray], gap: np.ndarray) -> dict[str, Any]:
    """The plane of the last two axes with the largest difference, as bytes: A, B, and the difference."""
    planes = gap.reshape(-1, *gap.shape[-2:])
    chosen = int(np.argmax(planes.max(axis=(1, 2))))
    height, width = (min(_SIDE, size) for size in gap.shape[-2:])
    values = [_pooled(array.reshape(planes.shape)[chosen], height, width) for array in both]
    finite = np.concatenate([array[np.isfinite(array)] for array in values])
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    difference = _pooled(planes[chosen], height, width, of_largest=True)
    largest = float(difference.max())
    place = f" of plane {[int(i) for i in np.unravel_index(chosen, gap.shape[:-2])]}" if gap.ndim > 2 else ""
    scaled = [*(_bytes(array, low, high) for array in values), _bytes(difference, 0.0, largest)]
    return {"w": width, "h": height, "planes": scaled, "title": f"difference{place}, at most {largest:.3g}"}


def _pooled(plane: np.ndarray, height: int, width: int, *, of_largest: bool = False) -> np.ndarray:
    """A plane in fewer pixels, each the mean or the largest of its elements."""
    rows, columns = (np.arange(n) * size // n for n, size in zip((height, width), plane.shape, strict=True))
    reduced = np.maximum if of_largest else np.add
    pooled: np.ndarray = reduced.reduceat(reduced.reduceat(plane, rows, axis=0), columns, axis=1)
    if of_largest:
        return pooled
    return pooled / np.outer(np.diff(rows, append=plane.shape[0]), np.diff(columns, append=plane.shape[1]))


def _bytes(array: np.ndarray, low: float, high: float) -> str:
    span = high - low if np.isfinite(high - low) and high > low else 1.0
    levels = np.clip(np.nan_to_num((array - low) / span, nan=1.0, posinf=1.0, neginf=0.0), 0.0, 1.0)
    return base64.b64encode((levels * 255).astype(np.uint8).tobytes()).decode()


def with_images(rows: Sequence[PairedTensor]) -> set[int]:
    """The indices of the rows whose tensors have images: those that differ first."""
    return set(sorted(range(len(rows)), key=lambda i: rows[i].state in ("agrees", "blind"))[:_IMAGES])


def beside_svg(beside: Beside) -> str:
    """Both graphs in one image; of models of many layers those around the first difference."""
    parts: list[object] = [element("rect", width="100%", height="100%", fill="#ffffff")]
    left, height = 0.0, 0.0
    drawn = [
        svg_and_size(_around_first(beside, side, drawing, beside.models[side][1]), 1)
        for side, drawing in enumerate(beside.drawings())
    ]
    wides = [max(wide, 320.0) + 20 for _, (wide, _) in drawn]
    # About 7.5 pixels for a letter.
    title = textwrap.wrap(visible(cut(beside.title, 600)), int((sum(wides) - 28) / 7.5))
    top = 18.0 * len(title) + 34
    for k, line in enumerate(title):
        parts.append(element("text", line, x=14, y=18 * k + 22, font_size=14, font_weight="bold"))
    for label, (text, (_, high)), wide in zip(beside.labels, drawn, wides, strict=True):
        parts.append(element("text", visible(cut(label, 200)), x=left + 14, y=top - 10, font_size=13, fill="#15191e"))
        parts.append(Html(text.partition("\n")[2].replace("<svg ", f'<svg x="{left:.1f}" y="{top}" ', 1)))
        left, height = left + wide, max(height, high + top)
    return svg_document(parts, f"{left:.1f}", f"{height:.1f}")


def _around_first(beside: Beside, side: int, drawing: Drawing, model: ModelGraph) -> Drawing:
    """The layers around the first difference, if there are more than an image should have."""
    node = None if beside.first is None else beside.layer(beside.rows[beside.first], side)
    if node not in model.nodes or drawing.boxes <= _SVG_BOXES:
        return drawing
    marks = {(one.line.path, one.line.id, one.line.name): (one.state, one.badge) for one in drawing.layers}
    part = draw(model, around=[node.name], hops=_SVG_HOPS, cluster=False)
    marked = [(one, *marks[one.line.path, one.line.id, one.line.name]) for one in part.layers]
    layers = tuple(replace(one, state=state, badge=badge) for one, state, badge in marked)
    return replace(part, name=drawing.name, layers=layers, states=drawing.states)
