"""Files damaged at random: no command fails with an internal error."""

from __future__ import annotations

import random
import re
import shutil
from pathlib import Path

import pytest

from irexec.cli.main import run

_GOOD = sorted((Path(__file__).parent.parent / "data" / "openvino").glob("*.xml"))
_INTEGERS = [
    "0", "1", "-1", "2", "3", "7", "100", "1000000", "9223372036854775807", "-9223372036854775808", "1e5", "nan", "x",
    "",
]  # fmt: skip
_ROUNDS = 12
_WORDS = [
    "f32", "i64", "FP16", "I32", "u4", "string", "true", "false", "numpy", "none", "opset1", "opset13", "Relu", "Add",
    "Reshape", "...", "?",
]  # fmt: skip


def _damaged(text: str, rng: random.Random) -> str:
    """The text with one to three of its attribute values or dims replaced, or lines dropped or swapped."""
    for _ in range(rng.randint(1, 3)):
        lines = text.split("\n")
        i = rng.randrange(2, len(lines))
        choice = rng.random()
        if choice < 0.15:
            lines[i] = ""
        elif choice < 0.25:
            j = rng.randrange(2, len(lines))
            lines[i], lines[j] = lines[j], lines[i]
        else:
            found = list(re.finditer(r'"([^"]*)"|>([^<]+)<', lines[i]))
            if found:
                start, end = rng.choice(found).span()
                old = lines[i][start + 1 : end - 1]
                new = (
                    rng.choice(_INTEGERS + _WORDS)
                    if rng.random() < 0.7
                    else re.sub(r"\d+", lambda _: rng.choice(_INTEGERS[:8]), old, count=1)
                )
                lines[i] = lines[i][: start + 1] + new + lines[i][end - 1 :]
        text = "\n".join(lines)
    return text


@pytest.mark.sampled(4)
@pytest.mark.parametrize("path", _GOOD, ids=lambda path: path.stem)
def test_no_internal_error(path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = random.Random(path.stem)
    text = path.read_text(encoding="utf-8")
    shutil.copy(path.with_suffix(".bin"), tmp_path / "m.bin")
    for _ in range(_ROUNDS):
        damaged = _damaged(text, rng)
        (tmp_path / "m.xml").write_text(damaged, encoding="utf-8")
        for command in (["validate", "--weights"], ["infer", "-i", "random"], ["inspect", "--layers", "--weights"]):
            code = run([command[0], str(tmp_path / "m.xml"), *command[1:]])
            err = capsys.readouterr().err
            assert code in (0, 1, 2, 3, 4), f"{command[0]}: {err}"
