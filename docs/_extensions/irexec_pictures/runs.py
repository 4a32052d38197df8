"""Running the lines of a picture, and keeping the result."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

from irexec_pictures.colours import darkened
from irexec_pictures.terminal import size_of, terminal_svg
from irexec_pictures.timeline import timeline

_ROOT = Path(__file__).parents[3]
_SOURCES = ("irexec", "converters", "samples", "docs/_extensions/irexec_pictures")
_SIZE = re.compile(r'<svg[^>]*? width="([\d.]+)" height="([\d.]+)"')
_NOTEBOOK = """
import ast, sys
code = ast.parse(sys.argv[1])
last = code.body.pop()
names = {}
exec(compile(code, "<picture>", "exec"), names)
shown = eval(compile(ast.Expression(last.value), "<picture>", "eval"), names)._repr_html_()
style = "body{font-family:system-ui,sans-serif;margin:8px;color-scheme:light dark;background:Canvas;color:CanvasText}"
open("page.html", "w", encoding="utf-8").write(f"<!DOCTYPE html><meta charset=utf-8><style>{style}</style>{shown}")
"""


class CannotBeMade(Exception):
    """A line of a picture failed."""


@dataclass(frozen=True)
class Picture:
    """A finished picture.

    Attributes:
        name: of its files.
        kind: "terminal", "image" or "page".
        width, height: in pixels; 0 for a page.
    """

    name: str
    kind: str
    width: float = 0.0
    height: float = 0.0


class Studio:
    """Makes pictures into a folder.

    Args:
        folder: of the pictures.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def picture(self, lines: Sequence[str], columns: int, most: int) -> Picture:
        """The picture of these lines, of an earlier build unless something has changed.

        Args:
            lines: commands after "$ ", or Python.
            columns: of the terminal.
            most: lines of output; 0 for all.

        Raises:
            CannotBeMade: a command ended with an exit code above 1.
        """
        key = hashlib.sha256(json.dumps([lines, columns, most]).encode()).hexdigest()[:10]
        words = re.findall(r"\w+", lines[-1].replace("$ irexec", ""))
        name = "-".join([*words[:2], key])
        record = self._folder / f"{name}.json"
        if record.exists():
            fingerprint, found = json.loads(record.read_text("utf-8"))
            if fingerprint == _fingerprint():
                return Picture(**found)
        with tempfile.TemporaryDirectory() as text:
            room = Path(text)
            shutil.copytree(_ROOT / "samples", room / "samples", ignore=shutil.ignore_patterns("__pycache__"))
            picture = self._made(name, lines, columns, most, room)
        record.write_text(json.dumps([_fingerprint(), asdict(picture)]), "utf-8")
        return picture

    def _made(self, name: str, lines: Sequence[str], columns: int, most: int, room: Path) -> Picture:
        if not lines[0].startswith("$ "):
            _run([sys.executable, "-c", _NOTEBOOK, "\n".join(lines)], room, columns)
        output = ""
        for line in lines if lines[0].startswith("$ ") else ():
            output = _run(["sh", "-c", line.removeprefix("$ ")], room, columns)
        if (room / "page.html").exists():
            shutil.copy(room / "page.html", self._folder / f"{name}.html")
            return Picture(name, "page")
        if (room / "trace.json").exists():
            (room / "picture.svg").write_text(timeline((room / "trace.json").read_text("utf-8")), "utf-8")
        if (room / "picture.svg").exists():
            light = (room / "picture.svg").read_text("utf-8")
            return self._keep(name, "image", light, darkened(light))
        shown = lines[-1].replace(" > /dev/null", "")
        light, dark = (terminal_svg(shown, output, columns, most, is_dark=is_dark) for is_dark in (False, True))
        return self._keep(name, "terminal", light, dark)

    def _keep(self, name: str, kind: str, light: str, dark: str) -> Picture:
        for theme, text in (("light", light), ("dark", dark)):
            (self._folder / f"{name}-{theme}.svg").write_text(text, "utf-8")
        return Picture(name, kind, *size_of(light, _SIZE))


def _run(words: Sequence[str], room: Path, columns: int) -> str:
    """The output of a command, in colours."""
    environment = {name: text for name, text in os.environ.items() if name not in ("NO_COLOR", "CI")}
    programs = room / "programs"
    if not programs.exists():
        programs.mkdir()
        (programs / "irexec").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m irexec "$@"\n')
        (programs / "irexec").chmod(0o755)
    environment |= {
        "PATH": f"{programs}{os.pathsep}{environment['PATH']}", "PYTHONPATH": str(_ROOT), "COLUMNS": str(columns),
        "LINES": "60",
        "FORCE_COLOR": "1", "TERM": "xterm-256color", "TTY_INTERACTIVE": "0",
    }  # fmt: skip
    output, code = _on_a_terminal(words, room, environment)
    if code > 1:
        raise CannotBeMade(f"{words[-1]!r} ended with exit code {code}\n{output}")
    return output


def _on_a_terminal(words: Sequence[str], room: Path, environment: dict[str, str]) -> tuple[str, int]:
    """The output, without stderr, and the exit code of a command that writes to a simulated terminal."""
    if not hasattr(os, "openpty"):
        # Windows has no terminals that a program can open.
        done = subprocess.run(words, cwd=room, env=environment, capture_output=True, encoding="utf-8", check=False)
        return done.stdout, done.returncode
    ours, theirs = os.openpty()
    with subprocess.Popen(words, cwd=room, env=environment, stdout=theirs, stderr=subprocess.PIPE) as process:
        os.close(theirs)
        parts = []
        # Linux ends a terminal with an error.
        with suppress(OSError):
            while part := os.read(ours, 65_536):
                parts.append(part)
        os.close(ours)
        assert process.stderr is not None
        errors = process.stderr.read()
    output = b"".join(parts) or errors
    return output.decode("utf-8").replace("\r\n", "\n"), process.returncode


@cache
def _fingerprint() -> str:
    """Names, sizes and times of all that a picture may depend on."""
    found = hashlib.sha256()
    for folder in _SOURCES:
        for path in sorted((_ROOT / folder).rglob("*")):
            if path.is_file() and path.suffix in (".py", ".js", ".css", ".xml", ".bin", ".png", ".onnx"):
                found.update(f"{path.relative_to(_ROOT)} {path.stat().st_size} {path.stat().st_mtime_ns}\n".encode())
    return found.hexdigest()
