"""The list of the packages: each with the first sentence of its docstring."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator
from pathlib import Path

_ROOT = Path(__file__).parents[3]
_MODULES_OF = ("irexec", "irexec/tools")
"""Packages whose modules are listed too."""
_DEPTH, _INDENT, _COLUMN, _WIDTH = 3, 2, 24, 100


def packages() -> str:
    """One entry for each package of at most three levels, indented below its parent."""
    return "\n".join(line for name in ("irexec", "converters") for line in _entries(_ROOT / name, 0))


def _entries(path: Path, level: int) -> Iterator[str]:
    first = path / "__init__.py" if path.is_dir() else path
    name = f"{' ' * _INDENT * level}{path.name}{'/' if path.is_dir() else ''}"
    sentence = textwrap.wrap(_summary(first), _WIDTH - _COLUMN)
    if len(name) >= _COLUMN - 1:
        sentence.insert(0, "")
    for index, part in enumerate(sentence):
        yield f"{name if index == 0 else '':<{_COLUMN}}{part}".rstrip()
    if path.is_dir() and level + 1 < _DEPTH:
        inside = sorted(path.iterdir(), key=lambda child: (child.is_file(), child.name))
        for child in inside:
            is_module = child.suffix == ".py" and not child.name.startswith("__")
            is_listed = is_module and path.relative_to(_ROOT).as_posix() in _MODULES_OF
            if is_listed or (child / "__init__.py").exists():
                yield from _entries(child, level + 1)


def _summary(path: Path) -> str:
    """The first sentence of the docstring of a file, without marks of code."""
    paragraph = (ast.get_docstring(ast.parse(path.read_text("utf-8"))) or "").partition("\n\n")[0]
    return " ".join(paragraph.split()).partition(". ")[0].removesuffix(".").replace("``", "")
