"""The diagram of the packages, laid out by irexec itself from the imports in their files."""

from __future__ import annotations

import re
from html import escape
from pathlib import Path

from irexec.tools.graph.drawing import DrawnFrame, Link
from irexec.tools.graph.layout import lay_out
from irexec.tools.graph.svg import path
from irexec_pictures.colours import darkened

_ROOT = Path(__file__).parents[3]
_IMPORT = re.compile(r"^\s*(?:from|import) (?:irexec\.)?(\w+)", re.MULTILINE)
_PURPOSES = {
    "cli": ("one module per command", "control"),
    "integrations": ("Ray, Open Inference", "control"),
    "tools": ("what a command does", "input"),
    "display": ("tables, charts, pages", "input"),
    "api": ("public functions", "input"),
    "converters": ("ONNX to IR, IR to ONNX", "detection"),
    "runtime": ("session, execution", "product"),
    "compile": ("lower, passes, plan", "product"),
    "backend": ("fast kernels", "convolution"),
    "native": ("the same in C", "convolution"),
    "bounds": ("how exact a kernel is", "convolution"),
    "analysis": ("infer, validate, cost", "normalization"),
    "ops": ("kernels and shape rules", "arithmetic"),
    "schema": ("attributes, sizes", "arithmetic"),
    "reference": ("shared algorithms", "arithmetic"),
    "io": ("reads and writes IR", "quantization"),
    "ir": ("Model, Graph, Node", "quantization"),
    "dtypes": ("element types", "quantization"),
    "errors": ("exceptions", "quantization"),
}
_WIDTH, _HEIGHT, _MARGIN = 150.0, 42.0, 16.0


def architecture(base: Path) -> tuple[float, float]:
    """Write the diagram beside ``base`` in both variants; returns its size."""
    text, size = _svg()
    base.with_name(f"{base.name}-light.svg").write_text(text, "utf-8")
    base.with_name(f"{base.name}-dark.svg").write_text(darkened(text), "utf-8")
    return size


def _path(name: str) -> Path:
    """The folder of a package, or the file of a module."""
    folder = _ROOT / name if name == "converters" else _ROOT / "irexec" / name
    return folder if folder.is_dir() else folder.with_suffix(".py")


def _imports(name: str) -> set[str]:
    """The packages that a package imports."""
    path = _path(name)
    files = path.rglob("*.py") if path.is_dir() else [path]
    return {found for path in files for found in _IMPORT.findall(path.read_text("utf-8"))} - {name}


def _svg() -> tuple[str, tuple[float, float]]:
    from irexec.tools.graph.drawing import FAMILIES

    names = [name for name in _PURPOSES if _path(name).exists()]
    imports = {name: _imports(name) & set(names) for name in names}
    number = {name: k for k, name in enumerate(names)}
    links = tuple(Link(number[a], number[b], (number[a], 0)) for a in names for b in sorted(_needed(a, imports)))
    layout = lay_out(
        DrawnFrame(0, "graph", "", None, None, tuple(range(len(names))), links), [(_WIDTH, _HEIGHT)] * len(names)
    )
    lines, boxes = [], []
    for link, bends in zip(links, layout.bends, strict=True):
        (x, y), (to_x, to_y) = layout.centres[link.source or 0], layout.centres[link.target or 0]
        points = [(x, y + _HEIGHT), *(bends or ()), (to_x, to_y)]
        lines.append(f'<path d="{path(points)}" fill="none" stroke="#7c8792"/>')
        lines.append(f'<path d="M{to_x - 3.5} {to_y - 6}h7l-3.5 6z" fill="#7c8792"/>')
    for name, (x, y) in zip(names, layout.centres, strict=True):
        purpose, family = _PURPOSES[name]
        colours = FAMILIES[family]
        boxes.append(
            f'<rect x="{x - _WIDTH / 2}" y="{y}" width="{_WIDTH}" height="{_HEIGHT}" rx="6" fill="{colours.fill}" '
            f'stroke="{colours.stroke}"/><text x="{x}" y="{y + 18}" text-anchor="middle" font-weight="bold" '
            f'font-size="13" fill="#15191e">{escape(name)}</text><text x="{x}" y="{y + 33}" text-anchor="middle" '
            f'font-size="10.5" fill="#56606b">{escape(purpose)}</text>'
        )
    width, height = layout.width + 2 * _MARGIN, layout.height + 2 * _MARGIN
    text = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} '
        f'{height:.0f}" font-family="Helvetica, Arial, sans-serif"><rect width="100%" height="100%" fill="#ffffff"/>'
        f'<g transform="translate({_MARGIN} {_MARGIN})">{"".join(lines)}{"".join(boxes)}</g></svg>'
    )
    return text, (width, height)


def _needed(name: str, imports: dict[str, set[str]]) -> set[str]:
    """The packages that a package imports and that it reaches through no other one."""
    reached: set[str] = set()
    for between in imports[name]:
        waiting = [between]
        while waiting:
            for other in imports[waiting.pop()] - reached:
                reached.add(other)
                waiting.append(other)
    return imports[name] - reached
