"""compare: what is known of OpenVINO, for layers that differ."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import irexec
from irexec import Builder, Model, save_model
from irexec.cli.main import run as run_cli
from irexec.tools.compare import CompareOptions, compare
from irexec.tools.compare.comparison import Known
from tests.tools.compare.recorded import stand_in

X = np.array([-4, -3, 2, 5], np.int32)


def halves() -> Model:
    """Integers halved; -3 / 2 is -2 by the specification, and -1 in the CPU plugin of OpenVINO 2026.4."""
    builder = Builder("m")
    x = builder.emit(
        "Add", builder.parameter("i32", (4,), "x"), builder.constant(np.array([1], np.int32)), name="shifted"
    )
    y = builder.emit("Divide", x, builder.constant(np.array([2], np.int32)), m_pythondiv=True, name="halves")
    builder.result(builder.emit("Convert", y, destination_type="f32", name="out"))
    return builder.model()


# As OpenVINO 2026.4.1 gives them.
RECORDED = {
    "x": X,
    "shifted": X + 1,
    "halves": np.array([-1, -1, 1, 3], np.int32),
    "out": np.array([-1, -1, 1, 3], np.float32),
}


def _check(known: tuple[Known, ...], right: str = "irexec") -> None:
    (one,) = known
    assert (one.code, one.layer.name, one.right) == ("IR911", "halves", right)
    assert "rounds quotients of integers towards zero" in one.message


@pytest.mark.parametrize(
    "options", [CompareOptions(a_runtime="openvino"), CompareOptions(b_runtime="openvino")], ids=["a", "b"]
)
def test_a_difference_of_openvino_is_known(options: CompareOptions, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(monkeypatch, "openvino", lambda feeds: RECORDED)
    found = compare(halves(), options=options, inputs={"x": X})
    assert found.first is not None and found.first.row.b.name == "halves"
    _check(found.known)
    assert "known: " in found._repr_html_() and "IR911" in found._repr_html_()
    assert found.as_dict()["known"][0]["code"] == "IR911"


def test_nothing_is_known_where_nothing_differs_or_openvino_has_no_part(monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(monkeypatch, "openvino", lambda feeds: RECORDED)
    monkeypatch.setitem(RECORDED, "halves", np.array([-2, -1, 1, 3], np.int32))
    monkeypatch.setitem(RECORDED, "out", np.array([-2, -1, 1, 3], np.float32))
    assert compare(halves(), options=CompareOptions(b_runtime="openvino"), inputs={"x": X}).known == ()
    other = halves()
    next(node for node in other.nodes if node.name == "halves").attributes["m_pythondiv"] = "false"
    found = compare(halves(), other, inputs={"x": X})
    assert found.first is not None and found.known == ()


def test_another_layer_at_fault_has_no_known_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(monkeypatch, "openvino", lambda feeds: RECORDED)
    monkeypatch.setitem(RECORDED, "shifted", X + 2)
    found = compare(halves(), options=CompareOptions(b_runtime="openvino"), inputs={"x": X})
    assert found.first is not None and found.first.row.b.name == "shifted"
    assert "IR911" not in {one.code for one in found.known if one.layer.name == "shifted"}


def test_recorded_tensors_may_be_of_openvino(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.savez(tmp_path / "a.npz", **RECORDED)
    save_model(halves(), tmp_path / "m.xml")
    _check(compare(tmp_path / "a.npz", tmp_path / "m.xml").known)
    assert run_cli(["compare", str(tmp_path / "a.npz"), str(tmp_path / "m.xml")]) == 1
    shown = " ".join(capsys.readouterr().out.split())
    assert "known: IR911 if A was recorded from OpenVINO: the CPU plugin rounds quotients of integers" in shown
    assert "; irexec agrees with the specification" in shown


def test_openvino_itself() -> None:
    pytest.importorskip("openvino")
    found = compare(halves(), options=CompareOptions(b_runtime="openvino"), inputs={"x": X})
    _check(found.known)


@pytest.mark.parametrize(("level", "is_known"), [(0.5, True), (1.0, False)])
def test_a_value_between_two_levels_may_have_either(
    level: float, is_known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A quarter lies between the levels 0 and 0.5, and is not on the level 1."""
    builder = Builder("edge")
    ends = [builder.constant(np.float32(0)), builder.constant(np.float32(1))]
    held = builder.emit("FakeQuantize", builder.parameter("f32", (3,), "x"), *ends, *ends, levels=3, name="held")
    builder.result(builder.emit("Multiply", held, builder.constant(np.float32(3)), name="out"))
    x = np.array([0.25, 0.1, 0.6], np.float32)
    (own,) = irexec.compile_model(builder.model())({"x": x}).values()
    assert own[0] in (0.0, 1.5)
    theirs = np.array([0.5 - own[0] / 3 if is_known else level, 0, 0.5], np.float32)
    stand_in(monkeypatch, "openvino", lambda feeds: {"x": x, "held": theirs, "out": 3 * theirs})
    found = compare(builder.model(), options=CompareOptions(b_runtime="openvino"), inputs={"x": x})
    assert found.first is not None and found.first.row.b.name == "held"
    text = "1 value on an edge between two levels: rounding decides, and either is right"
    assert [str(one) for one in found.known if not one.code] == [text] * is_known
