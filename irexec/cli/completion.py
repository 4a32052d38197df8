"""Shell completion: files, tensors and layers of the model on the command line, operations and finding codes.

It answers from the words alone, without importing a command, which would take longer than a user waits for a key. Only
options of which nothing is said here are asked of the commands themselves. An error gives no candidates, and never
prints a text.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence

from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    ShellComplete,
    ZshComplete,
    add_completion_class,
)

from irexec.cli.commands import COMMANDS
from irexec.io.onnx_bytes import ModelNames, model_names

_MODELS = (".xml", ".onnx")
_ARRAYS = (".npy", ".npz")
_IMAGES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm", ".pbm")
_FILE, _FOLDER = "file", "dir"
"""Values that the shell completes: any file, and folders."""
_GENERATED = ("random", "zeros", "ones")

Words = Sequence[str]
Values = Callable[[Words, str], Iterable[str]] | str


class _Completion(ShellComplete):
    """Answers from the words where it can, and as click does where it cannot."""

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem[str]]:
        """Completions of the last word."""
        try:
            found = completions(args, incomplete)
            return super().get_completions(args, incomplete) if found is None else found
        except Exception:
            # The user is typing and wants no message of any error.
            return []


class _Bash(_Completion, BashComplete):
    """Bash splits words at ``=`` and ``:`` too, and replaces what is after the last of them."""

    def get_completion_args(self) -> tuple[list[str], str]:
        """The words before the last one, and that one, as they are typed."""
        args, incomplete = super().get_completion_args()
        words = _joined([*args, incomplete])
        return words[:-1], words[-1]

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem[str]]:
        """The same, as bash inserts it."""
        start = max(incomplete.rfind("="), incomplete.rfind(":")) + 1
        items = super().get_completions(args, incomplete)
        return [
            CompletionItem(_quoted(item.value[start:]), item.type, item.help) if item.type == "plain" else item
            for item in items
        ]


class _Zsh(_Completion, ZshComplete):
    """Zsh."""


class _Fish(_Completion, FishComplete):
    """Fish."""


def install() -> None:
    """Answer the shells that click knows."""
    for kind in (_Bash, _Zsh, _Fish):
        add_completion_class(kind)


def _joined(words: Words) -> list[str]:
    """The words with those put together again that ``=`` and ``:`` have parted."""
    found: list[str] = []
    for i, word in enumerate(words):
        is_part = bool(re.fullmatch("[=:]+", word)) or (i > 0 and bool(re.fullmatch("[=:]+", words[i - 1])))
        if is_part and found:
            found[-1] += word
        else:
            found.append(word)
    return found


def _quoted(value: str) -> str:
    """A text quoted for the shell; brackets and commas of shapes stay as they are."""
    return value if re.fullmatch(r"[\w@%+=:,./\[\]?-]*", value) else shlex.quote(value)


def completions(words: Words, incomplete: str) -> list[CompletionItem[str]] | None:
    """Completions of ``incomplete``, the word after ``words``; None where only the command itself knows them."""
    command = next((word for word in words if word in COMMANDS), None)
    if command is None:
        found = [CompletionItem(name, help=COMMANDS[name]) for name in sorted(COMMANDS)]
        if incomplete.startswith("-"):
            found = [*map(CompletionItem, ("--help", "--version", "--debug"))]
        return [item for item in found if str(item.value).startswith(incomplete)]
    before = ""
    option = words[-1] if words[-1].startswith("-") else ""
    if incomplete.startswith("--"):
        option, equals, incomplete = incomplete.partition("=")
        if not equals:
            return None
        before = f"{option}="
    values = _values(command, option)
    if values is None:
        return None
    if isinstance(values, str):
        return [CompletionItem(incomplete, type=values)]
    return [
        CompletionItem(f"{before}{value}")
        for value in dict.fromkeys(values(words, incomplete))
        if value and value.startswith(incomplete) and value.isprintable()
    ]


def _values(command: str, option: str) -> Values | None:
    """The kind of the values of an option, or of an argument without one; None if it is not known here."""
    if option:
        return _OPTIONS.get((command, option), _OPTIONS.get(("", option)))
    return _ARGUMENTS.get(command, _files(*_MODELS))


def _files(*suffixes: str) -> Values:
    """Files with these suffixes, and folders."""

    def values(words: Words, incomplete: str) -> Iterable[str]:
        return _paths(incomplete, suffixes)

    return values


def _paths(incomplete: str, suffixes: Sequence[str]) -> list[str]:
    """Paths with this beginning. A folder that is the only match is opened: shells put a space after a single value."""
    found = sorted(_listed(incomplete, suffixes))
    while len(found) == 1 and found[0].endswith("/"):
        inside = sorted(_listed(found[0], suffixes))
        if not inside:
            break
        found = inside
    return found


def _listed(incomplete: str, suffixes: Sequence[str]) -> Iterator[str]:
    folder, _, start = incomplete.rpartition("/")
    shown = f"{folder}/" if "/" in incomplete else ""
    with os.scandir(os.path.expanduser(shown) or ".") as entries:
        for entry in entries:
            if not entry.name.startswith(start) or (entry.name.startswith(".") and not start):
                continue
            if entry.is_dir():
                yield f"{shown}{entry.name}/"
            elif entry.name.lower().endswith(tuple(suffixes)):
                yield f"{shown}{entry.name}"


def _names(words: Words) -> Iterator[ModelNames]:
    """The names in each model among the words."""
    for path in words:
        path = os.path.expanduser(path)
        if path.lower().endswith(_MODELS) and os.path.isfile(path):
            yield model_names(path)


def _tensors(words: Words, incomplete: str) -> Iterable[str]:
    return (name for names in _names(words) for name in (*names.tensors, *names.layers))


def _layers(words: Words, incomplete: str) -> Iterable[str]:
    return (name for names in _names(words) for name in (*names.layers, *names.tensors))


def _sources(words: Words, incomplete: str) -> Iterator[str]:
    """[NAME=]SOURCE"""
    name, equals, source = incomplete.rpartition("=")
    start = f"{name}{equals}"
    yield from (f"{start}{value}" for value in (*_GENERATED, *_paths(source, (*_ARRAYS, *_IMAGES))))
    if not equals:
        # With what is generated: shells put a space after an only value.
        yield from (f"{one}={value}" for names in _names(words) for one in names.inputs for value in _GENERATED)


def _shapes(words: Words, incomplete: str) -> Iterator[str]:
    """Completions NAME[SIZE,...] with the sizes of the model."""
    for names in _names(words):
        yield from (f"{name}[{'' if shape is None else shape}]" for name, shape in names.inputs.items())


def _codes(words: Words, incomplete: str) -> Iterable[str]:
    from irexec.analysis.codes import findings

    return (code.lower() for code in findings()) if incomplete.islower() else findings()


def _operations(words: Words, incomplete: str) -> Iterable[str]:
    from irexec.schema.registry import opset_versions

    return sorted({type for type, _ in opset_versions()})


_ARGUMENTS: dict[str, Values] = {
    "explain": _codes, "ops": _operations, "convert": _files(".onnx"), "compare": _files(*_MODELS, ".npz"),
    "batch": _files(*_MODELS, *_ARRAYS, *_IMAGES, ".parquet"),
}  # fmt: skip
"""Kinds of arguments by command; a command that is not listed has models."""

_OPTIONS: dict[tuple[str, str], Values] = {
    ("", "-i"): _sources, ("", "--input"): _sources, ("", "--shape"): _shapes, ("", "--tensor"): _tensors,
    ("", "--around"): _layers, ("", "--from"): _layers, ("", "--to"): _layers,
    ("", "--bin"): _files(".bin"), ("", "--a-bin"): _files(".bin"), ("", "--b-bin"): _files(".bin"),
    ("", "--assert"): _files(*_ARRAYS), ("", "--onnx"): _files(".onnx"), ("", "--check"): _files(*_MODELS),
    ("", "--labels"): _FILE, ("", "-o"): _FILE, ("", "--output"): _FILE, ("", "--trace"): _FILE,
    ("", "--dump-layers"): _FOLDER, ("", "--plugin"): _files(".py"),
    ("validate", "--ignore"): _codes, ("reduce", "--finding"): _codes, ("reduce", "--check"): _FILE,
    ("edit", "--cut-from"): _tensors, ("edit", "--cut-to"): _tensors, ("edit", "--add-output"): _tensors,
    ("edit", "--remove"): _layers,
    ("convert", "--input"): _shapes, ("convert", "--verify-shape"): _shapes,
}  # fmt: skip
"""Kinds of values by command and option; the command "" stands for all others."""
