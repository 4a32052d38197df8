"""The .bin is mapped, not read, and bytes that do not exist matter only where they are used."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from irexec import ModelError, io
from irexec.io.sources import Weights

SIZE = 1 << 30
BIG = f"""<net name="big" version="11"><layers>
<layer id="0" name="w" type="Const" version="opset1"><data element_type="f32" shape="{SIZE // 4}" offset="0" size="{SIZE}"/>
<output><port id="0" precision="FP32"><dim>{SIZE // 4}</dim></port></output></layer>
<layer id="1" name="r" type="Result" version="opset1"><input><port id="0" precision="FP32"><dim>{SIZE // 4}</dim></port></input></layer>
</layers><edges><edge from-layer="0" from-port="0" to-layer="1" to-port="0"/></edges></net>"""

# In a process of its own: how far memory grew cannot be told in one that has been larger before.
MEASURE = """
import sys
import irexec
import irexec.io
from tests.support.memory import peak_kilobytes
irexec.validate(irexec.io.read_text(b'<net name="warm" version="11"/>'))
before = peak_kilobytes()
model = irexec.read_model(sys.argv[1])
assert irexec.validate(model) == []
raw = model.nodes[0].constant.raw
print(raw.size, raw[0], raw[-1], peak_kilobytes() - before)
"""


def test_a_gigabyte_costs_nothing_until_it_is_used(tmp_path: Path) -> None:
    with open(tmp_path / "m.bin", "wb") as file:
        file.truncate(SIZE)
    (tmp_path / "m.xml").write_text(BIG, encoding="utf-8")
    ran = subprocess.run(
        [sys.executable, "-c", MEASURE, str(tmp_path / "m.xml")], capture_output=True, text=True, check=True
    )
    size, first, last, grown = ran.stdout.split()
    assert (int(size), int(first), int(last)) == (SIZE, 0, 0)
    assert int(grown) < 20_000


def test_no_file_is_missed_only_where_bytes_are_asked_for(tmp_path: Path) -> None:
    (tmp_path / "m.xml").write_text(BIG, encoding="utf-8")
    model = io.read(tmp_path / "m.xml")
    assert [problem.code for problem in model.problems] == ["IR022"]
    assert model.nodes[0].constant is not None
    with pytest.raises(ModelError, match=r"m\.bin does not exist"):
        _ = model.nodes[0].constant.raw


def test_an_empty_file_can_hold_empty_constants(tmp_path: Path) -> None:
    (tmp_path / "m.bin").write_bytes(b"")
    (tmp_path / "m.xml").write_text(
        BIG.replace(f'size="{SIZE}"', 'size="0"').replace(str(SIZE // 4), "0"), encoding="utf-8"
    )
    model = io.read(tmp_path / "m.xml")
    assert model.problems == []
    assert model.nodes[0].constant is not None
    assert model.nodes[0].constant.raw.size == 0


def test_a_file_that_has_shrunk(tmp_path: Path) -> None:
    (tmp_path / "m.bin").write_bytes(bytes(8))
    weights = Weights(tmp_path / "m.bin")
    (tmp_path / "m.bin").write_bytes(bytes(4))
    with pytest.raises(ModelError, match=r"m\.bin has been changed since it was opened: it had 8 bytes, now 4"):
        weights.slice(0, 8)()


def test_a_range_is_read_only_and_at_its_offset(tmp_path: Path) -> None:
    (tmp_path / "m.bin").write_bytes(bytes(range(10)))
    found = Weights(tmp_path / "m.bin").slice(3, 4)()
    np.testing.assert_array_equal(found, [3, 4, 5, 6])
    assert not found.flags.writeable


def test_another_bin_can_be_named(tmp_path: Path) -> None:
    (tmp_path / "other.bin").write_bytes(bytes(range(8)))
    text = BIG.replace(f'size="{SIZE}"', 'size="8"').replace(str(SIZE // 4), "2")
    (tmp_path / "m.xml").write_text(text, encoding="utf-8")
    model = io.read(tmp_path / "m.xml", tmp_path / "other.bin")
    assert (model.problems, model.bin_path) == ([], tmp_path / "other.bin")
    with pytest.raises(ModelError, match=r"none\.bin does not exist"):
        io.read(tmp_path / "m.xml", tmp_path / "none.bin")
