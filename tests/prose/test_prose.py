"""Docstrings, comments and pages name the thing first and have no chains of pronouns."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.pages import blocks
from tests.prose.rules import Text, chains, refused, texts
from tests.support.paths import ROOT

_SOURCES = sorted(path for package in ("irexec", "converters", "samples") for path in (ROOT / package).rglob("*.py"))
_TESTS = sorted(path for path in (ROOT / "tests").rglob("*.py") if "prose" not in path.parts)
_C = sorted(path for suffix in ("*.c", "*.h") for path in (ROOT / "irexec").rglob(suffix))
_SCRIPTS = sorted((ROOT / "irexec").rglob("*.js"))
_PAGES = [ROOT / "README.md", *sorted(path for path in (ROOT / "docs").rglob("*.md") if "generated" not in path.parts)]


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def test_docstrings_and_comments() -> None:
    found = [
        f"{_name(path)}:{text.line}: {objection}"
        for path in _SOURCES
        for text in texts(path.read_text("utf-8"))
        for objection in text.objections()
    ]
    assert not found, "\n".join(found)


def test_sources_that_guides_write() -> None:
    found = [
        f"{_name(path)}:{block.start + text.line}: {objection}"
        for path in _PAGES
        for block in blocks(path.read_text("utf-8"))
        if block.language == "python" and block.caption
        for text in texts(block.text)
        for objection in text.objections()
    ]
    assert not found, "\n".join(found)


def test_pages() -> None:
    found = [f"{_name(path)}: {objection}" for path in _PAGES for objection in chains(path.read_text("utf-8"))]
    assert not found, "\n".join(found)


def test_refused_words() -> None:
    style = ROOT / "docs" / "development" / "style.md"  # It lists the words that are refused.
    found = [
        f"{_name(path)}:{words}"
        for path in [*_SOURCES, *_TESTS, *_C, *_SCRIPTS, *_PAGES, ROOT / "CHANGELOG.md"]
        if path != style
        for words in refused(path.read_text("utf-8"))
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("Blocks of so many rows.", 1),
        ("A surrogate is no character, and the search goes on.", 2),
        ("# Nothing reads it any\n# more.", 1),
        ('"sizes that are no "\n    "multiple of 4"', 1),
        ("OpenVINO reads no more. It parts\nfrom irexec.", 2),
        ("There is no such input; there\nare no boxes.", 0),
        ("It is no longer read, and has no more elements than are read.", 0),
        ("An error is no larger than no more than two.", 0),
        ("A layer is no\n    layer.", 1),
        ("import parts\nfrom a import b", 0),
    ],
)
def test_refused_words_of_a_text(text: str, count: int) -> None:
    assert len(list(refused(text))) == count


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("Indices of the changes that may cause downstream shape changes.", 0),
        ("What is known of a value.", 1),
        ("How many elements there are.", 1),
        ("As many elements in steps forward are all of them.", 1),
        ("Of a Parameter of a body, the changes that what it is given follows from.", 1),
        ("The positions of those in layers that shapes follow from which differ.", 1),
        ("A value that is known. A size which is not.\n\nA name whose layer is gone.", 0),
        ("Code is no prose: `that which what` and ``those that``.", 0),
        ("Offsets of values.", 0),
        ("For each axis the number of windows.", 1),
        ("On which core a thread runs.", 1),
        ("Is called after every step.", 1),
        ("Runs.\n\n    Args:\n        count: how many runs there are.\n        model: that runs.", 2),
        ("Runs.\n\n    Args:\n        count: number of runs.\n        how: the way.\n        seed: of a kind: what.", 0),
        ("A note: what it means.", 0),
    ],
)  # fmt: skip
def test_rules(text: str, count: int) -> None:
    assert len(list(Text(1, text).objections())) == count


def test_all_texts_of_a_source_are_read() -> None:
    source = '"""Module."""\n# One\n# comment.\nX = 1  # Of it.\n"""Constant."""\n\n\ndef f():\n    """Function."""\n'
    assert set(texts(source)) == {
        Text(1, "Module."),
        Text(2, "One comment. Of it.", is_docstring=False),
        Text(5, "Constant."),
        Text(9, "Function."),
    }
