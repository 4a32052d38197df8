"""Statistics of constants: right whatever the blocks, and in little memory. The expected values come from NumPy on the whole array."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import irexec
from irexec import io
from irexec.tools.inspect.weights import WeightLine, weights
from tests.support.memory import traced_peak

_BLOCK = 1 << 17


def _line(values: np.ndarray) -> WeightLine:
    builder = irexec.Builder("m")
    builder.result(builder.constant(values))
    (line,) = weights(builder.model())
    return line


def _normal(count: int, mean: float, std: float, type: str = "f4") -> np.ndarray:
    return np.random.default_rng(count).normal(mean, std, count).astype(type)


def _with(values: np.ndarray, **at: float) -> np.ndarray:
    for position, value in at.items():
        values[int(position[1:])] = value
    return values


ARRAYS = {
    "less than a block": _normal(1000, 3, 2),
    "exactly a block": _normal(_BLOCK, -1, 0.5),
    "several blocks": _normal(3 * _BLOCK + 17, 0, 1),
    "far from zero": _normal(2 * _BLOCK, 1e6, 1e-2, "f8"),
    "halves": _normal(_BLOCK + 1, 0, 100, "f2"),
    "integers": np.random.default_rng(0).integers(-128, 128, 2 * _BLOCK + 3).astype(np.int8),
    "64 bits": np.arange(-_BLOCK, _BLOCK),
    "booleans": np.arange(1000) % 3 == 0,
    "zeros": np.zeros(2 * _BLOCK + 1, np.float32),
    "NaN and infinities": _with(_normal(2 * _BLOCK, 5, 1), _0=np.nan, _7=np.inf, _140000=-np.inf),
    "a block of NaN alone": np.concatenate([np.full(_BLOCK, np.nan, np.float32), _normal(100, 2, 1)]),
    "near the limit": np.full(2 * _BLOCK, 1e300),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_statistics(name: str) -> None:
    values = ARRAYS[name]
    line = _line(values)
    finite = values[np.isfinite(values)].astype(np.float64)
    assert (line.min, line.max) == (finite.min(), finite.max())
    assert line.zeros == np.mean(finite == 0)
    assert line.not_finite == values.size - finite.size
    with np.errstate(over="ignore"):
        mean = np.mean(finite / 2**10) * 2**10
    np.testing.assert_allclose(line.mean, mean, rtol=1e-9, atol=1e-12)
    if name != "near the limit":
        np.testing.assert_allclose(line.std, np.std(finite), rtol=1e-6)


@pytest.mark.parametrize(
    "values", [np.full(3, np.nan, np.float32), np.zeros((2, 0), np.float32), np.array(["a", "b"], object)]
)
def test_where_there_is_nothing_to_measure(values: np.ndarray) -> None:
    line = _line(values)
    assert (line.min, line.max, line.mean, line.std, line.zeros) == (None, None, None, None, 0.0)
    assert line.not_finite == (3 if values.dtype == np.float32 and values.size else 0)


def test_packed_types_are_cut_between_bytes() -> None:
    """u3 is packed in groups of 8 values, u6 in groups of 4: blocks start at a group."""
    for type, bits in (("u1", 1), ("u2", 2), ("u3", 3), ("u4", 4), ("u6", 6)):
        count = _BLOCK + 8
        xml = f"""<net name="n" version="11"><layers><layer id="0" name="c" type="Const" version="opset1">
<data element_type="{type}" shape="{count}" offset="0" size="{count * bits // 8}"/>
<output><port id="0"><dim>{count}</dim></port></output></layer></layers><edges/></net>"""
        ones = bytes(count * bits // 8 - bits) + b"\xff" * bits
        (line,) = weights(io.read_text(xml, ones))
        # By hand: all bits of the last 8 values are set, and those are in a block of their own.
        assert (line.min, line.max) == (0, 2**bits - 1)
        assert line.mean == pytest.approx(8 * (2**bits - 1) / count)


@pytest.mark.parametrize(("type", "width"), [("f32", 4), ("f16", 2), ("i8", 1), ("u4", 0.5)])
def test_a_large_constant_takes_little_memory(type: str, width: float, tmp_path: Path) -> None:
    """64 MB of a file take a few MB: the file itself is mapped, and the blocks of it are all that is allocated."""
    size = 64 << 20
    count = int(size / width)
    xml = f"""<net name="n" version="11"><layers><layer id="0" name="c" type="Const" version="opset1">
<data element_type="{type}" shape="{count}" offset="0" size="{size}"/>
<output><port id="0"><dim>{count}</dim></port></output></layer></layers><edges/></net>"""
    (tmp_path / "m.xml").write_text(xml)
    with (tmp_path / "m.bin").open("wb") as file:
        file.truncate(size)
    model = irexec.read_model(tmp_path / "m.xml")
    lines: list[WeightLine] = []
    assert traced_peak(lambda: lines.extend(weights(model))) < 8 << 20
    assert [(line.zeros, line.mean) for line in lines] == [(1, 0)]


def test_progress_counts_the_bytes() -> None:
    amounts: list[int] = []
    builder = irexec.Builder("m")
    builder.result(builder.constant(np.zeros(2 * _BLOCK, np.float32)))
    weights(builder.model(), amounts.append)
    assert amounts == [4 * _BLOCK, 4 * _BLOCK]
