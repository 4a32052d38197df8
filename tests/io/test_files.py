"""Files: written whole or not at all, mapped and not read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import irexec
from irexec.dtypes.elements import F32


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
