"""XML that is not trusted: refused quickly, in bounded memory, and nothing but the model's own .bin is opened."""

from __future__ import annotations

import builtins
import time
from pathlib import Path

import pytest

import irexec
from irexec import io
from irexec.cli.main import run
from tests.support.memory import peak_kilobytes

LAUGHS = (
    '<!DOCTYPE net [<!ENTITY a "ha">'
    + "".join(f'<!ENTITY a{i} "{"&a" + str(i - 1) + ";" if i > 1 else "&a;"}{"&a;" * 9}">' for i in range(1, 12))
    + "]>"
)
NET = '<net name="n" version="11"><layers>{}</layers><edges/></net>'
PARAMETER = (
    '<layer id="0" name="x" type="Parameter" version="opset1"><data shape="{0}" element_type="f32"/>'
    '<output><port id="0" precision="FP32"/></output></layer>'
    '<layer id="1" name="r" type="Relu" version="opset1"><input><port id="0" precision="FP32"/></input>'
    '<output><port id="1" precision="FP32"/></output></layer>'
)
BODY = '<layer id="0" name="l" type="TensorIterator" version="opset1"><port_map/><body><layers>'

ROWS = {
    "external entity": '<!DOCTYPE net [<!ENTITY e SYSTEM "file:///etc/passwd">]><net name="&e;" version="11"/>',
    "external DTD": '<!DOCTYPE net SYSTEM "file:///etc/passwd"><net name="n" version="11"/>',
    "document type after a comment": '<!-- hello --><?xml-stylesheet href="x"?><!DOCTYPE net><net name="n" version="11"/>',
    "entity expansion": LAUGHS + '<net name="&a11;" version="11"/>',
    "entity that is not declared": '<net name="&e;" version="11"/>',
    "deep nesting": "<net>" + "<a>" * 100_000 + "</a>" * 100_000 + "</net>",
    "nesting that the parser would allow": "<net version='11'>" + "<a>" * 1000 + "</a>" * 1000 + "</net>",
    "a tag without an end": '<net name="' + "a" * (35 << 20),
    "bodies in bodies": NET.format(BODY * 300 + "</layers><edges/></body></layer>" * 300),
    "nothing": "",
    "not XML": "\x7fELF\x01\x02",
    "cut in the middle": '<net name="n" version="11"><layers><layer id="0"',
    "UTF-16 without a mark, hiding entity expansion": (
        '<?xml version="1.0"?>' + LAUGHS + '<net name="&a11;" version="11"/>'
    ).encode("utf-16-le"),
    "UTF-16": '<net name="n" version="11"/>'.encode("utf-16"),
    "an encoding that hides a document type": b'<?xml version="1.0" encoding="UTF-7"?>+ADwAIQ-DOCTYPE net+AD4-<net/>',
    "another root": "<html/>",
    "another version": '<net name="n" version="9"/>',
    "no version": '<net name="n"/>',
}


@pytest.mark.parametrize("text", ROWS.values(), ids=ROWS)
def test_is_refused(text: str | bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "m.xml").write_bytes(text if isinstance(text, bytes) else text.encode())
    memory, start = peak_kilobytes(), time.process_time()
    for command in (["validate"], ["infer"], ["inspect"]):
        assert run([*command, str(tmp_path / "m.xml")]) == 3
        captured = capsys.readouterr()
        assert captured.out == ""
        assert captured.err.startswith("error: ")
        assert captured.err.count("\n") == 1
        assert "root:" not in captured.err
    assert time.process_time() - start < 5
    assert peak_kilobytes() - memory < 200_000


VAST = [
    "1099511627776,1099511627776",
    "9223372036854775807,9223372036854775807,9223372036854775807",
    "99999999999999999999999999",
]


@pytest.mark.parametrize("shape", VAST)
def test_vast_shapes_cost_nothing(shape: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "m.xml").write_text(NET.format(PARAMETER.format(shape)), encoding="utf-8")
    memory = peak_kilobytes()
    run(["validate", str(tmp_path / "m.xml")])
    assert run(["infer", str(tmp_path / "m.xml"), "-i", "random"]) == 3
    assert "irexec itself" not in capsys.readouterr().err
    assert peak_kilobytes() - memory < 200_000


CONSTANT = '<layer id="0" name="c" type="Const" version="opset1"><data element_type="f32" shape="{shape}" offset="{offset}" size="{size}"/><output><port id="0" precision="FP32"/></output></layer>'
CONSTANTS = {
    "a gigabyte of shape": {"shape": "1073741824,1073741824", "offset": "0", "size": "4"},
    "a gigabyte of size": {"shape": "1", "offset": "0", "size": "1152921504606846976"},
    "an offset beyond 64 bits": {"shape": "1", "offset": "340282366920938463463374607431768211456", "size": "4"},
    "a negative offset": {"shape": "1", "offset": "-4", "size": "4"},
    "a negative size": {"shape": "1", "offset": "0", "size": "-4"},
    "a negative shape": {"shape": "-1", "offset": "0", "size": "4"},
    "a size of 5000 digits": {"shape": "9" * 5000, "offset": "0", "size": "4"},
}


@pytest.mark.parametrize("texts", CONSTANTS.values(), ids=CONSTANTS)
def test_impossible_constants(texts: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "m.xml").write_text(NET.format(CONSTANT.format(**texts)), encoding="utf-8")
    (tmp_path / "m.bin").write_bytes(bytes(64))
    for arguments in (["validate"], ["validate", "--weights"]):
        assert run([*arguments, str(tmp_path / "m.xml")]) == 1
        captured = capsys.readouterr()
        assert "IR02" in captured.out or "IR4" in captured.out
        assert "irexec itself" not in captured.err


def test_nothing_else_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    irexec.save_model(io_model(), tmp_path / "m.xml")
    opened: list[str] = []
    real = builtins.open

    def spy(file: object, *arguments: object, **options: object) -> object:
        opened.append(str(file))
        return real(file, *arguments, **options)

    monkeypatch.setattr(builtins, "open", spy)
    model = irexec.read_model(tmp_path / "m.xml")
    irexec.validate(model, weights=True)
    assert {Path(name).name for name in opened} <= {"m.xml", "m.bin"}


def io_model() -> irexec.Model:
    builder = irexec.Builder("m")
    builder.result(builder.emit("Relu", builder.constant([1.0, 2.0])))
    return builder.model()


def test_text_is_read_without_a_file() -> None:
    assert io.read_text('<net name="n" version="11"/>').name == "n"


def test_text_with_a_surrogate_is_not_xml() -> None:
    with pytest.raises(irexec.ModelError, match="line 1: not well-formed XML"):
        io.read_text("<net name='\ud800' version='11'/>")
