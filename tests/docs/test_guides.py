"""The guides for developers add something that works; tests/docs/test_examples.py runs them and compares their outputs."""

from __future__ import annotations

import pytest

from tests.docs.pages import blocks, commands
from tests.support.paths import ROOT

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
}  # fmt: skip


@pytest.mark.parametrize("name", _SHOWS)
def test_a_guide_shows_each_step(name: str) -> None:
    found = blocks((ROOT / "docs" / "development" / name).read_text("utf-8"))
    assert any(block.caption for block in found)
    shown = [command.words for block in found if block.language == "console" for command in commands(block)]
    assert len(shown) == len(_SHOWS[name])
    assert all(words.startswith(start) for words, start in zip(shown, _SHOWS[name], strict=True))
