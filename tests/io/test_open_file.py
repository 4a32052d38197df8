"""What happens to a .bin while a model has it open."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import numpy as np
import pytest

import irexec
from irexec.io import sources

ZEROS = np.zeros(2, np.float32)


def _save(value: float, path: Path) -> None:
    builder = irexec.Builder("m")
    x = builder.parameter(irexec.f32, (2,), "x")
    builder.result(builder.emit("Add", x, builder.constant(np.full(2, value, np.float32))), "y")
    irexec.save_model(builder.model(), path)


@pytest.mark.parametrize("mmap", [True, False])
def test_a_bin_that_is_replaced_is_not_seen(mmap: bool, tmp_path: Path) -> None:
    path = tmp_path / "m.xml"
    _save(1, path)
    model = irexec.read_model(path, mmap=mmap)
    _save(2, path)
    assert irexec.compile_model(model)(ZEROS)[0].tolist() == [1, 1]


def test_a_bin_that_is_written_to_before_it_is_mapped_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "m.xml"
    _save(1, path)
    model = irexec.read_model(path)
    binary = path.with_suffix(".bin")
    binary.write_bytes(np.full(2, 2, np.float32).tobytes())
    os.utime(binary, ns=(0, 0))
    with pytest.raises(irexec.NodeError, match=r"m\.bin has been changed since it was opened: it was written to again"):
        irexec.compile_model(model)


def test_a_bin_that_is_truncated_before_it_is_mapped_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "m.xml"
    _save(1, path)
    model = irexec.read_model(path)
    os.truncate(path.with_suffix(".bin"), 4)
    with pytest.raises(irexec.NodeError, match=r"m\.bin has been changed since it was opened: it had 8 bytes, now 4"):
        irexec.compile_model(model)


@pytest.mark.parametrize(("mmap", "read_at_once"), [(True, 8), (False, 0)], ids=["small", "not to be mapped"])
def test_a_bin_that_is_not_mapped_may_be_truncated_at_any_time(
    mmap: bool, read_at_once: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "READ_AT_ONCE", read_at_once)
    path = tmp_path / "m.xml"
    _save(1, path)
    compiled = irexec.compile_model(path, mmap=mmap)
    os.truncate(path.with_suffix(".bin"), 0)
    assert compiled(ZEROS)[0].tolist() == [1, 1]


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="the system does not list open files under /proc")
def test_no_file_stays_open_without_its_model(tmp_path: Path) -> None:
    path = tmp_path / "m.xml"
    _save(1, path)
    binary = str(path.with_suffix(".bin"))

    def opened() -> int:
        return sum(os.path.realpath(link) == binary for link in Path("/proc/self/fd").iterdir())

    model = irexec.read_model(path)
    assert opened() == 1
    compiled = irexec.compile_model(model)
    assert opened() <= 1
    del model, compiled
    gc.collect()
    assert opened() == 0
