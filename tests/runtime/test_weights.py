"""Form in which compressed weights are held."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irexec
from irexec.analysis.builder import Builder
from irexec.compile.memory_limit import MemoryLimit
from irexec.dtypes.elements import F32, I4
from irexec.runtime.program import byte_size, holding_of


def _model() -> irexec.Model:
    b = Builder("m")
    x = b.parameter(F32, (1, 256), "x")
    stored = b.emit("Convert", b.constant(np.ones((64, 256)), I4), destination_type=F32)
    scaled = b.emit("Multiply", stored, b.constant(np.full((64, 1), 0.5), F32))
    b.result(b.emit("MatMul", x, scaled, transpose_a=False, transpose_b=True))
    return b.model()


def test_size_of_weights_of_four_bits_in_bytes() -> None:
    assert byte_size(_model()) == 64 * 256


@pytest.mark.parametrize(
    ("mode", "kilobytes", "expected"),
    [("packed", 1 << 20, "packed"), ("unpacked", 1, "unpacked"), ("auto", 64, "bytes"), ("auto", 63, "packed")],
)
def test_modes(mode: Any, kilobytes: int, expected: str, tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/meminfo").write_text(f"MemAvailable: {kilobytes} kB\n")
    assert holding_of(mode, _model(), MemoryLimit(root=tmp_path)) == expected


@pytest.mark.parametrize("mode", ["auto", "packed", "unpacked"])
def test_results_are_the_same(mode: Any) -> None:
    x = np.arange(256, dtype=np.float32)[None]
    expected = np.full((1, 64), 0.5 * x.sum(), np.float32)
    np.testing.assert_array_equal(irexec.compile_model(_model(), weights=mode)([x])[0], expected)


@pytest.mark.parametrize(
    ("given", "named"), [("Packed", "'Packed'"), ("model.bin", "'model.bin'"), (b"12", "a path or bytes")]
)
def test_another_word_is_an_error(given: Any, named: str) -> None:
    with pytest.raises(irexec.InputError, match=f"weights is {named}, expected 'auto', 'packed' or 'unpacked'"):
        irexec.compile_model(_model(), weights=given)
