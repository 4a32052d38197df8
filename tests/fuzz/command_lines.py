"""Random command lines, made of what the commands say of their own options."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import click

from irexec.cli import main
from tests.fuzz import odd

# Values that would ask for much work or many threads, which is not a fault.
_COUNTS = {"runs": ["1", "2", "0", "-1", "x", "1.5", ""], "threads": ["1", "2", "0", "-1", "x", ""]}
_SHAPES = [
    "1,1,8,8", "x[1,2]", "image[1,1,8,8]", "x=1,2", "x[?,2..8]", "[1]", "x[", "=", "x=", "x[-1]", "x[1,,2]", "x[9223372036854775807,2]", "nosuch[1]", "0[1,2]", "x[...]", "?", "x[4294967296,2]",
    "x[0,99999999999999999999]", "x[1]y",
]  # fmt: skip
_SOURCES = [
    "random", "zeros", "ones", "x=random", "0=ones", "-", "x=-", "=", "x=", "nosuch=random", "random=random", "",
    "x=y=z", "9=zeros",
]  # fmt: skip
_NAMES = ["l1", "x", "y", "0", "1", "l1:0", "l1:9", "nosuch", "", "-1", "99999999999999999999", "l1:"]
# Nothing outside of the folder.
_TEXTS = [text for text in odd.TEXTS if "/" not in text]


def command_line(rng: random.Random, files: Sequence[str]) -> list[str]:
    """A command with options and arguments, some of them odd, out of order or left out."""
    name = rng.choice(
        [*sorted(main.cli.list_commands(click.Context(main.cli))), "infer", "infer", "validate", "convert"]
    )
    command = main.cli.get_command(click.Context(main.cli), name)
    assert command is not None
    words: list[list[str]] = []
    for parameter in command.params:
        for _ in range(_times(rng, parameter)):
            words.append(_words(rng, name, parameter, files))
    if rng.random() < 0.1:
        rng.shuffle(words)
    if name == "bisect":
        # Nothing is asked of an index or installed: the case's folder has no releases.
        words.append(["--installed", "--environments", "."])
    if name == "serve":
        # A server would run on.
        words.append(["--port", "none"])
    found = [name, *(word for group in words for word in group)]
    if rng.random() < 0.08:
        found.insert(
            rng.randrange(len(found) + 1),
            rng.choice(["--debug", "--json", "-h", "--", "--nosuch", "--version", *_TEXTS]),
        )
    if rng.random() < 0.03:
        del found[rng.randrange(len(found))]
    return found


def _times(rng: random.Random, parameter: click.Parameter) -> int:
    if isinstance(parameter, click.Argument):
        return rng.choice([1] * 12 + [0, 2])
    return rng.choice([1, 1, 2] if parameter.multiple else [1]) if rng.random() < 0.2 else 0


def _words(rng: random.Random, command: str, parameter: click.Parameter, files: Sequence[str]) -> list[str]:
    if isinstance(parameter, click.Argument):
        return [_argument(rng, command, files)]
    assert isinstance(parameter, click.Option)
    name = rng.choice(parameter.opts)
    if parameter.is_flag:
        return [name]
    value = _value(rng, parameter, files)
    return [f"{name}={value}"] if name.startswith("--") and rng.random() < 0.2 else [name, value]


def _argument(rng: random.Random, command: str, files: Sequence[str]) -> str:
    """A model that the command reads, mostly."""
    if command in ("ops", "explain"):
        return rng.choice(["IR103", "ir201", "IR999", "Gather", "conv", "", *_TEXTS])
    suffix = ".onnx" if command == "convert" else ".xml"
    likely = [file for file in files if file.endswith(suffix)]
    return (
        rng.choice(likely)
        if rng.random() < 0.8
        else rng.choice([*files, "-", ".", "", "nosuch.xml", "folder", *_TEXTS])
    )


def _value(rng: random.Random, parameter: Any, files: Sequence[str]) -> str:
    kind, name = parameter.type, str(parameter.name)
    if name in _COUNTS:
        return rng.choice(_COUNTS[name])
    if isinstance(kind, click.Choice):
        return rng.choice([*kind.choices, *kind.choices, "x", ""])
    if name in ("shapes", "verify_shapes"):
        return rng.choice(_SHAPES)
    if name in ("tensors", "tensor"):
        return rng.choice(_NAMES)
    if isinstance(kind, click.Path) or name == "inputs":
        paths = [
            *files, *files, "out.npz", "out.png", "out.xml", "out\udcfe.npz", "out\udcfe.xml", ".", "", "nosuch",
            "folder", "folder/new.xml", "out/", *_TEXTS,
        ]  # fmt: skip
        path = rng.choice(paths)
        return rng.choice([path, f"x={path}", f"image={path}", rng.choice(_SOURCES)]) if name == "inputs" else path
    return rng.choice(odd.NUMBER_TEXTS) if rng.random() < 0.7 else rng.choice(_TEXTS)
