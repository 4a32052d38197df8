"""What save_model must not overwrite: files that hold constants of the model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import irexec
from irexec.dtypes.elements import F32
from irexec.io.sources import Weights
from irexec.ir.constants import Constant
from irexec.ir.graph import ModelGraph

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
