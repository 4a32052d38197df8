"""Findings of files of version 2 to 7: all at once, each with its code, layer and line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import irexec
from irexec.analysis.codes import CODES
from irexec.cli.main import run
from irexec.errors import ConversionError
from tests.converters.legacy_ir.files import OldFile, single

X = np.ones((1, 2, 3, 3), np.float32)


def _with(after: str) -> OldFile:
    file, _ = single("ReLU", [X], [X.shape])
    file.after = after
    return file


FILES: dict[str, OldFile] = {
    "IR601": single("Swoosh", [X], [X.shape])[0],
    "IR602": single("Activation", [X], [X.shape], {"type": "mish"})[0],
    "IR603": single("Clamp", [X], [X.shape], {"min": 0})[0],
    "IR604": single("ScaleShift", [X], [X.shape], blobs={"weights": np.ones(5, np.float32)})[0],
    "IR605": _with("<statistics><layer><name>y</name><min>0</min></layer></statistics>"),
    "IR606": _with('<pre-process reference-layer-name="x0"><channel id="0"><scale value="2"/></channel></pre-process>'),
    "IR607": single("Resample", [X], [(1, 2, 4, 4)], {"type": "caffe.ResampleParameter.NEAREST"})[0],
    "IR608": single("Gelu", [X], [X.shape])[0],
    "IR010": _with('<edges><edge from-layer="9" from-port="0" to-layer="1" to-port="0"/></edges>'),
    "IR201": single("ReLU", [X], [(1, 2, 3, 4)])[0],
    "IR203": single("ReLU", [X], [X.shape])[0],
}
FILES["IR203"].layers[1] = FILES["IR203"].layers[1].replace("<dim>3</dim>", "<dim>4</dim>", 1)


@pytest.mark.parametrize("code", FILES)
def test_a_code_is_found(code: str, tmp_path: Path) -> None:
    (tmp_path / "m.xml").write_bytes(FILES[code].text)
    (tmp_path / "m.bin").write_bytes(FILES[code].data)
    found = irexec.validate(tmp_path / "m.xml")
    assert [one.code for one in found] == [code]
    assert found[0].severity == CODES[code].severity


def test_every_code_of_old_versions_has_a_file() -> None:
    assert {code for code in FILES if code.startswith("IR6")} == {code for code in CODES if code.startswith("IR6")}


def test_all_findings_are_reported_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = OldFile(5)
    x = file.input("x", X.shape)
    first = file.layer("Swoosh", "one", [(x, 0, X.shape)], [X.shape])
    second = file.layer("Clamp", "two", [(first, 1, X.shape)], [X.shape], {"min": 1})
    file.layer("ScaleShift", "three", [(second, 1, X.shape)], [X.shape])
    file.after = '<meta_data><MO_version value="1.5.12.49d067a0"/></meta_data>'
    (tmp_path / "m.xml").write_bytes(file.text)
    with pytest.raises(ConversionError) as caught:
        irexec.read_model(tmp_path / "m.xml")
    text = str(caught.value)
    assert "IR version 5, written by Model Optimizer 1.5.12.49d067a0): line" in text
    assert "line 7, layer 1 'one' (Swoosh): 'Swoosh' is not a layer type" in text
    assert "line 11, layer 2 'two' (Clamp): the attribute max is missing" in text
    assert "layer 3 'three' (ScaleShift): the layer has no weights" in text
    assert run(["validate", str(tmp_path / "m.xml")]) == 1
    printed = capsys.readouterr().out
    assert [code for code in ("IR601", "IR603", "IR604") if code not in printed] == []


def test_a_warning_of_a_read_model_is_a_python_warning(tmp_path: Path) -> None:
    (tmp_path / "m.xml").write_bytes(FILES["IR607"].text)
    with pytest.warns(irexec.ConversionWarning, match=r"m\.xml, line 7, layer 1 'y' \(Resample\): release 2020\.1"):
        irexec.read_model(tmp_path / "m.xml")


def test_inspect_says_who_wrote_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("m.xml").write_bytes(_with('<meta_data><MO_version value="2019.2.0-436"/></meta_data>').text)
    assert run(["inspect", "m.xml"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "m.xml: old, IR version 6, written by Model Optimizer 2019.2.0-436" in printed


def test_a_model_without_its_bin_is_read(tmp_path: Path) -> None:
    file, _ = single("ScaleShift", [X], [X.shape], blobs={"weights": np.ones(2, np.float32)})
    (tmp_path / "m.xml").write_bytes(file.text)
    model = irexec.read_model(tmp_path / "m.xml")
    assert [finding.code for finding in irexec.validate(model)] == ["IR022"]
    with pytest.raises(irexec.ModelError, match=r"m\.bin does not exist"):
        irexec.compile_model(model)
