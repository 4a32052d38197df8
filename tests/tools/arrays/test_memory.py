"""Arrays that need more memory than there is are refused before they are read."""

from __future__ import annotations

import io
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irexec
from irexec.cli.main import run
from irexec.compile.memory_limit import MemoryLimit
from irexec.errors import InputError, IrexecError, ModelError
from irexec.tools.arrays.files import open_arrays
from irexec.tools.run.input_sources import InputSource, input_arrays
from tests.support.paths import DIGITS
from tests.tools.arrays.files import saved, zipped


def _memory(folder: Path, kilobytes: int) -> MemoryLimit:
    """The limit of a system that has so much memory left."""
    (folder / "proc").mkdir()
    (folder / "proc" / "meminfo").write_text(f"MemAvailable: {kilobytes} kB\n")
    return MemoryLimit(root=folder)


def test_more_than_the_memory_that_is_available_is_refused_before_it_is_read(tmp_path: Path) -> None:
    zipped(
        tmp_path / "x.npz",
        {"a.npy": saved(np.zeros(129)), "b.npy": saved(np.zeros(128)), "c.npy": saved(np.zeros(205, "S1"))},
    )
    with open_arrays(tmp_path / "x.npz", memory=_memory(tmp_path, 1)) as arrays:
        with pytest.raises(
            ModelError, match=r"x.npz, array 'a': float64 of shape \[129\] takes 1032 bytes .* of memory are available"
        ):
            arrays.read("a")
        assert arrays.read("b").size == 128
        # Decoded it takes four bytes more for each of a character.
        with pytest.raises(ModelError, match="takes 1025 bytes"):
            arrays.read("c")


@pytest.mark.parametrize("source", ["x.npy", "x.png"])
def test_max_memory_limits_inputs(source: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.save(tmp_path / "x.npy", np.zeros((1, 1, 8, 8), np.float32))
    shutil.copy(DIGITS / "digit_7.png", tmp_path / "x.png")
    path = str(tmp_path / source)
    inputs = [InputSource(None, path)]
    model = irexec.read_model(DIGITS / "classifier.xml")
    with pytest.raises(IrexecError, match="the limit of memory is 1 bytes"):
        input_arrays(inputs, model.inputs, notify=print, memory=MemoryLimit(1))
    assert run(["infer", str(DIGITS / "classifier.xml"), "-i", path, "--max-memory", "1M"]) in (2, 3)
    assert "the limit of memory is 1 MB" in capsys.readouterr().err


@pytest.mark.parametrize("source", ["zeros", "random"])
def test_memory_limits_what_is_generated(source: str, tmp_path: Path) -> None:
    builder = irexec.Builder("m")
    builder.result(builder.parameter("f32", (1 << 20, 4), "x"))
    with pytest.raises(
        InputError, match=r"input 'x': shape \[1048576,4\] takes 16777216 bytes \(16.8 MB\), and 16.4 MB of memory are"
    ):
        input_arrays(
            [InputSource(None, source)], builder.model().inputs, notify=print, memory=_memory(tmp_path, 16_000)
        )


class _Endless(io.RawIOBase):
    """A pipe that never ends."""

    def __init__(self, start: bytes) -> None:
        self.start, self.given = start, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self.given += len(buffer)
        buffer[:] = (self.start + bytes(len(buffer)))[: len(buffer)]
        self.start = b""
        return len(buffer)


@pytest.mark.parametrize(
    ("start", "message", "maximum"),
    [(b"", "not a readable .npy or .npz: it starts with", 2 << 20), (b"\x93NUMPY", "has more than 4.1 MB", 8 << 20)],
)
def test_standard_input_without_an_end(
    start: bytes, message: str, maximum: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    endless = _Endless(start)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(endless)))
    with pytest.raises(ModelError, match=f"standard input: {message}"):
        open_arrays("-", memory=_memory(tmp_path, 8_000))
    assert endless.given < maximum
