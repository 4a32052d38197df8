"""Every command and Python block of the documentation and README.md gives what the page shows."""

from __future__ import annotations

import builtins
import importlib.util
import itertools
import os
import re
import symtable
import tomllib
from pathlib import Path

import pytest

from tests.docs.matching import DoesNotApply, apply, matches, normal
from tests.docs.pages import Block, blocks, commands, pages
from tests.docs.running import FailedExample, NotAnExample, run_page
from tests.docs.update import updated
from tests.support.paths import ROOT

# Python, console and diff blocks are run. The rest shows outputs, formats and lines for a shell (test_shell_lines).
_RUN = {"console", "python", "diff"}
_SHOWN = {"text", "c", "sh", "xml", "json", "toml", "ini", "yaml"}


def _id(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def _pages_with_examples() -> list[Path]:
    return [path for path in pages() if _RUN.intersection(block.language for block in blocks(path.read_text("utf-8")))]


def _is_long(path: Path) -> bool:
    """True if the page is a guide that changes a copy of the source tree, or makes a distribution of its own."""
    if path.parent.name == "development":
        return any(block.caption for block in blocks(path.read_text("utf-8")))
    return path.name == "plugins.md"


@pytest.mark.parametrize(
    "path",
    [pytest.param(path, marks=[pytest.mark.slow] * _is_long(path), id=_id(path)) for path in _pages_with_examples()],
)
@pytest.mark.sampled(8)
def test_outputs_are_those_that_the_page_shows(path: Path, tmp_path: Path) -> None:
    wrong = [
        f"{_id(path)}:{result.line}: {result.what}\n--- shown\n{result.shown}\n--- actual\n{normal(result.actual)}"
        for result in run_page(path.read_text("utf-8"), tmp_path)
        if not matches(result.shown or "", result.actual)
    ]
    assert not wrong, "\n\n".join([*wrong, "python -m tests.docs.update rewrites the outputs"])


@pytest.mark.parametrize("path", pages(), ids=_id)
def test_every_block_has_a_language_that_is_checked(path: Path) -> None:
    found = {block.language for block in blocks(path.read_text("utf-8"))}
    assert found <= _RUN | _SHOWN


@pytest.mark.parametrize("path", _pages_with_examples(), ids=_id)
def test_no_output_leaves_everything_open(path: Path) -> None:
    consoles = [block for block in blocks(path.read_text("utf-8")) if block.language == "console"]
    assert [command.words for block in consoles for command in commands(block) if command.output == ("...",)] == []


def _shell_lines() -> list[tuple[str, str]]:
    return [
        (_id(path), line.partition("  #")[0])
        for path in pages()
        for block in blocks(path.read_text("utf-8"))
        if block.language == "sh"
        for line in block.lines
        if line.strip() and not line.startswith("#")
    ]


@pytest.mark.parametrize(("page", "line"), _shell_lines(), ids=lambda value: value)
def test_shell_lines(page: str, line: str) -> None:
    """Lines that are not run here, because they install something or need OpenVINO, name only what exists."""
    for part in line.split("&&"):
        name, *words = part.split()
        assert name in (
            "eval", "export", "pip", "python", "pytest", "irexec", "git", "sphinx-build", ".ci/release", ".ci/run",
            "pre-commit", "ruff", "mypy", "cd", "curl", "model-explorer",
        ), part  # fmt: skip
        if name == "python" and words[0] == "-m":
            assert importlib.util.find_spec(words[1]) is not None or words[1] in _INSTALLED_BY_PAGES, part
        for path in re.findall(r"(?<![\w/.])(?:tests|docs|samples)/[\w./-]*", part):
            assert (ROOT / path).exists(), path
        for extras in re.findall(r"\.\[([a-z,]+)\]", part):
            assert set(extras.split(",")) <= _extras()


_INSTALLED_BY_PAGES = ("venv", "build", "twine")


@pytest.mark.parametrize("path", pages(), ids=_id)
def test_files_that_a_page_names_exist(path: Path) -> None:
    text = path.read_text("utf-8")
    # Installing irexec writes the stub.
    made = {block.caption for block in blocks(text)} | {"irexec/opset.pyi"}
    named = set(re.findall(r"`((?:irexec|converters|tests|docs|samples)/[\w./-]*)`", text))
    assert {name for name in named - made if "NAME" not in name and not (ROOT / name).exists()} == set()


def _extras() -> set[str]:
    return set(tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"])


@pytest.mark.parametrize(
    ("expected", "actual", "same"),
    [
        ("a b", "a  b", True),
        ("0.920884 seven", "0.920885 seven", True),
        ("0.920884 seven", "0.930885 seven", False),
        ("a  b\n────", "a   b\n─────", True),
        ("took ... ms\nend", "took 12.5 ms\nend", True),
        ("first\n...\nlast", "first\nsecond\nthird\nlast", True),
        ("first\n...\nlast", "first\nsecond\nthird\nend", False),
        ("3 layers", "4 layers", False),
        ("1e-05", "1.0e-05", True),
        ("", "anything", False),
    ],
)
def test_matching(expected: str, actual: str, same: bool) -> None:
    assert matches(expected, actual) is same


def test_a_wrong_output_is_seen_and_rewritten(tmp_path: Path) -> None:
    page = "```console\n$ cat samples/digits/labels.txt\nzero\nnine\n$ ls samples\ndigits\nexecution_graph.xml\nplugin\nray\nserve\n```\n"
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    results = list(run_page(page, tmp_path / "a"))
    assert [matches(result.shown or "", result.actual) for result in results] == [False, True]
    assert "one\ntwo\n" in updated(page, tmp_path / "b")


def test_python_blocks_share_names_and_their_output_follows(tmp_path: Path) -> None:
    page = "```python\nx = 1\n```\n\ntext\n\n```python\nprint(x + 1)\n```\n\n```text\n2\n```\n"
    assert [(result.shown, result.actual) for result in run_page(page, tmp_path)] == [(None, ""), ("2\n", "2\n")]


@pytest.mark.parametrize("caption", ["", ":caption: note.txt\n\n"])
def test_an_exception_in_a_python_block_is_never_an_output(caption: str, tmp_path: Path) -> None:
    page = f"```{{code-block}} text\n{caption}x\n```\n```python\n1 / 0\n```\n\n```text\n...\n```\n"
    with pytest.raises(FailedExample, match="ZeroDivisionError"):
        list(run_page(page, tmp_path))


def test_exit_codes_are_shown_by_echo(tmp_path: Path) -> None:
    (result,) = run_page("```console\n$ irexec inspect missing.xml; echo $?\n```\n", tmp_path)
    assert result.actual.endswith("\n3\n")


@pytest.mark.parametrize("command", ['python -c "exit(1)"', "irexec inspect missing.xml"])
def test_a_command_that_fails_is_never_shown_by_chance(command: str, tmp_path: Path) -> None:
    with pytest.raises(FailedExample, match="exit code"):
        list(run_page(f"```console\n$ {command}\n...\n```\n", tmp_path))


@pytest.mark.parametrize("command", ["rm -r samples", "irexec ops; echo $?; irexec ops"])
def test_other_commands_are_refused(command: str, tmp_path: Path) -> None:
    with pytest.raises(NotAnExample):
        list(run_page(f"```console\n$ {command}\n```\n", tmp_path))


def test_a_block_that_needs_optional_software_is_run_where_that_is(tmp_path: Path) -> None:
    page = "<!-- needs snakes -->\n```console\n$ python -c 'print(2)'\n1\n```\n"
    for name in "ab":
        (tmp_path / name).mkdir()
    assert list(run_page(page, tmp_path / "a")) == []
    (result,) = run_page(page, tmp_path / "b", {"snakes"})
    assert (result.shown, result.actual) == ("1", "2\n")


@pytest.mark.slow
def test_what_runs_in_the_background_ends_with_the_page(tmp_path: Path) -> None:
    page = "<!-- needs x -->\n```console\n$ python -c 'import os, time; print(os.getpid(), \"up\", flush=True); time.sleep(600)' &\n... up\n```\n"
    (result,) = run_page(page, tmp_path, {"x"})
    with pytest.raises(ProcessLookupError):
        os.kill(int(result.actual.split()[0]), 0)


@pytest.mark.slow
def test_what_fails_in_the_background_is_seen(tmp_path: Path) -> None:
    page = "<!-- needs x -->\n```console\n$ python -c 'exit(3)' &\nready\n```\n"
    with pytest.raises(FailedExample, match="exit code 3"):
        list(run_page(page, tmp_path, {"x"}))


def test_blocks_and_commands() -> None:
    page = "```{code-block} python\n:caption: a/b.py\n\nx = 1\n```\n\n```console\n$ irexec ops \\\n    Relu\nout\n```\n````{note}\n```console\n$ no\n```\n````\n"
    first, second = blocks(page)
    assert first == Block("python", "a/b.py", ("x = 1",), 3)
    assert [(command.words, command.output) for command in commands(second)] == [("irexec ops Relu", ("out",))]


def test_diffs() -> None:
    assert apply("a\nb\nc\n", " a\n+new\n b\n@@\n-c\n") == "a\nnew\nb\n"
    with pytest.raises(DoesNotApply):
        apply("a\na\n", "-a\n")


# The guides for developers add something that works; tests/docs/test_examples.py runs them and compares their outputs.


# What each guide must show, command by command: removing a step would leave the guide untested.
_SHOWS = {
    "add-operation.md": ["python -m pytest", "irexec ops SoftShrink", "irexec validate", "irexec infer"],
    "add-translator.md": ["irexec ops --check", "irexec convert", "irexec infer"],
    "add-pass.md": ["python -m pytest", "irexec inspect"],
    "add-fast-kernel.md": ["python -m pytest tests/backend", "python -m pytest tests/test_laws.py", "irexec inspect grn.xml --plan"],
    "add-c-kernel.md": [
        "python -m irexec.native.build",
        "python -m pytest tests/backend/test_native_grn.py",
        "python -m pytest tests/test_laws.py",
        "irexec inspect grn.xml --plan",
    ],
    "add-export.md": ["python -m pytest tests/to_onnx/test_rows.py", "irexec convert", "irexec infer"],
    "add-bound.md": ["python -m pytest", "irexec judge"],
    "add-finding.md": ["python -m pytest", "irexec validate", "irexec explain IR307"],
    "add-command.md": ["python -m pytest tests/cli/test_depth.py", "irexec depth"],
    "add-fact.md": ["python -m tests.support.signatures", "python -m pytest tests/cli/test_json.py", "irexec compare"],
}  # fmt: skip


@pytest.mark.parametrize("name", _SHOWS)
def test_the_files_of_a_guide_fit_the_sources(name: str) -> None:
    """The guides themselves run in the slow tier."""
    found = [block for block in blocks((ROOT / "docs" / "development" / name).read_text("utf-8")) if block.caption]
    for path, parts in itertools.groupby(sorted(found, key=lambda block: block.caption), lambda block: block.caption):
        text = (ROOT / path).read_text("utf-8") if (ROOT / path).exists() else None
        for block in parts:
            assert (block.language == "diff") == (text is not None), path
            text = block.text if text is None else apply(text, block.text)
        if path.endswith(".py"):
            assert text is not None
            known = vars(builtins).keys() | {"__file__", "__name__", "__path__"}
            symbols = symtable.symtable(text, path, "exec")
            defined = {one.get_name() for one in symbols.get_symbols() if one.is_assigned() or one.is_imported()}
            used = {one.get_name() for one in symbols.get_symbols() if one.is_referenced()}
            assert used - defined - known == set(), path


@pytest.mark.parametrize("name", _SHOWS)
def test_a_guide_shows_each_step(name: str) -> None:
    found = blocks((ROOT / "docs" / "development" / name).read_text("utf-8"))
    assert any(block.caption for block in found)
    shown = [command.words for block in found if block.language == "console" for command in commands(block)]
    assert len(shown) == len(_SHOWS[name])
    assert all(words.startswith(start) for words, start in zip(shown, _SHOWS[name], strict=True))
