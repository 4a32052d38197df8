"""Files: written whole or not at all, mapped and not read, and what happens to a .bin while a model has it open."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import numpy as np
import pytest

import irexec
from irexec import io
from irexec.dtypes.elements import F32
from irexec.errors import InputError, ModelError
from irexec.io import sources
from irexec.io.files import new_file
from irexec.io.reading import reading, writing
from irexec.io.sources import Weights
from irexec.ir.constants import Constant
from irexec.ir.graph import ModelGraph
from tests.support.processes import said


def _model(value: float) -> irexec.Model:
    builder = irexec.Builder("m")
    x = builder.parameter(F32, (2,), "x")
    builder.result(builder.emit("Add", x, builder.constant([float(value), float(value)])), "y")
    return builder.model()


def test_a_model_can_be_saved_over_itself(tmp_path: Path) -> None:
    irexec.save_model(_model(3), tmp_path / "m.xml")
    model = irexec.read_model(tmp_path / "m.xml")
    irexec.save_model(model, tmp_path / "m.xml")
    result = irexec.compile_model(irexec.read_model(tmp_path / "m.xml"))([np.zeros(2, np.float32)])
    np.testing.assert_array_equal(result[0], [3, 3])


def test_names_that_xml_cannot_contain_are_refused(tmp_path: Path) -> None:
    builder = irexec.Builder("m")
    builder.result(builder.parameter(F32, (2,), "bad\x00name"))
    with pytest.raises(irexec.ModelError, match="characters that XML cannot contain"):
        irexec.save_model(builder.model(), tmp_path / "m.xml")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(irexec.ModelError, match="cannot be written"):
        irexec.save_model(_model(1), tmp_path / "nowhere" / "m.xml")


# Errors of files name the file and the reason, and a file that cannot be written stays as it was.


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    path = tmp_path / "missing.npy"
    with pytest.raises(ModelError) as caught, reading(path):
        path.read_bytes()
    assert str(caught.value) == f"{path}: cannot be read: No such file or directory"


def test_an_error_without_a_reason_of_the_system_is_quoted() -> None:
    with pytest.raises(ModelError) as caught, writing("out.npz"):
        raise OSError("the library refuses")
    assert str(caught.value) == "out.npz: cannot be written: the library refuses"


def test_other_errors_pass() -> None:
    with pytest.raises(InputError, match="no class"), writing("out.npz"):
        raise InputError("no class")


def test_a_new_file_replaces_the_old_one_or_leaves_it(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")
    with pytest.raises(ModelError, match=r"a\.txt: cannot be written: No space left on device"), new_file(path) as file:
        file.write(b"half")
        raise OSError(28, "No space left on device")
    assert path.read_text() == "old"
    assert [each.name for each in tmp_path.iterdir()] == ["a.txt"]
    with new_file(path) as file:
        file.write(b"new")
    assert path.read_text() == "new"


def test_a_folder_is_not_replaced(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="cannot be written"), new_file(tmp_path) as file:
        file.write(b"x")
    assert tmp_path.is_dir()


# What happens to a .bin while a model has it open.


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


# What save_model must not overwrite: files that hold constants of the model.


VALUES = np.arange(4, dtype=np.float32)


def _with_constant(constant: Constant) -> ModelGraph:
    builder = irexec.Builder()
    builder.result(builder.emit("Add", builder.parameter("f32", (4,), "x"), builder.raw_constant(constant)))
    return builder.model()


def _saved(path: Path) -> Path:
    irexec.save_model(_with_constant(Constant(F32, (4,), lambda: VALUES.view(np.uint8), 16)), path)
    return path


def _constant(model: ModelGraph) -> Constant:
    return next(node.constant for node in model.nodes if node.constant is not None)


def _refused(model: ModelGraph, path: Path) -> None:
    before = {file: file.read_bytes() for file in path.parent.iterdir()}
    with pytest.raises(irexec.InputError, match=r"\.bin holds constants of the model and would be overwritten"):
        irexec.save_model(model, path)
    assert {file: file.read_bytes() for file in path.parent.iterdir()} == before


def test_external_data_of_another_format(tmp_path: Path) -> None:
    """As converters make constants of it: without an offset in a .bin."""
    (tmp_path / "m.bin").write_bytes(VALUES.tobytes())
    (tmp_path / "link.bin").symlink_to("m.bin")
    model = _with_constant(Constant(F32, (4,), Weights(tmp_path / "m.bin").slice(0, 16), 16))
    for name in ("m.xml", "link.xml"):
        _refused(model, tmp_path / name)
    with pytest.raises(irexec.ModelError, match="is not the name of a file"):
        irexec.save_model(model, "a\0.xml")
    irexec.save_model(model, tmp_path / "other.xml")
    assert (tmp_path / "other.bin").read_bytes() == VALUES.tobytes()


def test_the_bin_of_another_xml(tmp_path: Path) -> None:
    _saved(tmp_path / "m.xml").rename(tmp_path / "other.xml")
    _refused(irexec.read_model(tmp_path / "other.xml", tmp_path / "m.bin"), tmp_path / "m.xml")


@pytest.mark.parametrize("is_deleted", [False, True])
def test_a_model_is_saved_over_itself(is_deleted: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = _saved(tmp_path / "m.xml")
    monkeypatch.chdir(tmp_path)
    model = irexec.read_model("m.xml")
    if is_deleted:
        path.unlink()
    irexec.save_model(model, path)
    np.testing.assert_array_equal(irexec.compile_model(path).run({"x": VALUES})[0], 2 * VALUES)


def test_a_model_that_was_built_of_another_replaces_it(tmp_path: Path) -> None:
    path = _saved(tmp_path / "m.xml")
    irexec.save_model(_with_constant(_constant(irexec.read_model(path))), path)
    np.testing.assert_array_equal(irexec.compile_model(path).run({"x": VALUES})[0], 2 * VALUES)


# The .bin is mapped, not read, and bytes that do not exist matter only where they are used.


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
    size, first, last, grown = said(tmp_path, "-c", MEASURE, "m.xml")[0].split()
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
