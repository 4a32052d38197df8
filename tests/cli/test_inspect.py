"""irexec inspect: what is shown can be checked by hand against the XML."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from irexec.cli.main import run
from tests.support.paths import ROOT

DIGITS = ROOT / "samples" / "digits"
IRS = ROOT / "tests" / "data" / "openvino"
EXECUTED = ROOT / "samples" / "execution_graph.xml"
Capture = pytest.CaptureFixture[str]


def _shown(capsys: Capture, *arguments: object) -> str:
    assert run(["inspect", *map(str, arguments)]) == 0
    return capsys.readouterr().out


def _blocks(text: str) -> dict[str, list[str]]:
    """The indented lines of each layer by its first line."""
    found: dict[str, list[str]] = {}
    for line in text.split("\n\n", 2)[2].splitlines():
        if not line.startswith(" "):
            found[title := line] = []
        else:
            found[title].append(line.strip())
    return found


def test_layers_show_sources_names_and_attributes(capsys: Capture) -> None:
    blocks = _blocks(_shown(capsys, DIGITS / "classifier.xml", "--layers"))
    assert blocks["14 dense6.flat (Reshape, opset1, line 253)"] == [
        "input 0   f32[1,32,2,2]  from maxpool5:0",
        "input 1   i64[2]         from Constant",
        "output 2  f32[1,128]     dense6.flat",
        'special_zero="true"',
    ]


@pytest.mark.parametrize("width", [60, 80, 120])
def test_attributes_are_wrapped_and_none_is_broken(
    width: int, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    text = _shown(capsys, DIGITS / "classifier.xml", "--layers", "--weights", "--ops")
    assert max(map(len, text.splitlines()[3:])) <= width
    assert text.count('pads_begin="1, 1"') == 2
    assert text.count('rounding_type="floor"') == 2


def test_types_are_spelt_as_in_the_file(capsys: Capture) -> None:
    text = _shown(capsys, DIGITS / "classifier.xml", "--layers", "--ops")
    assert "5 relu1 (ReLU, opset1, line 87)" in text
    assert "1 conv0.w (Const, opset1, line 15)" in text
    assert "SoftMax-8" in text
    assert "Constant-1" not in text


def test_an_input_without_an_edge_is_shown(capsys: Capture) -> None:
    assert "no edge arrives" in _shown(capsys, DIGITS / "damaged.xml", "--layers")


def test_layers_of_bodies_have_their_path(capsys: Capture) -> None:
    text = _shown(capsys, IRS / "loop.xml", "--layers")
    assert " Loop_206/body/Add_192 (Add, opset1, line 124)" in text


def test_json_has_edges(capsys: Capture) -> None:
    document = json.loads(_shown(capsys, DIGITS / "classifier.xml", "--layers", "--json"))
    # The first three edges of the file.
    assert {"path": "", "from_layer": 0, "from_port": 0, "to_layer": 2, "to_port": 0} in document["edges"]
    assert {"path": "", "from_layer": 6, "from_port": 1, "to_layer": 8, "to_port": 0} in document["edges"]
    assert len(document["edges"]) == (DIGITS / "classifier.xml").read_text().count("<edge ")
    conv = document["layers"][8]
    assert (conv["sources"], conv["input_ports"], conv["output_ports"]) == (["maxpool2:0", "conv3.w"], [0, 1], [2])
    assert (conv["type"], conv["outputs"], conv["attributes"]["strides"]) == ("Convolution", ["f32[1,32,4,4]"], "1, 1")


def test_json_has_the_edges_of_bodies(capsys: Capture) -> None:
    edges = json.loads(_shown(capsys, IRS / "loop.xml", "--layers", "--json"))["edges"]
    assert {"", "Loop_206/body/"} == {edge["path"] for edge in edges}


def test_an_execution_graph(capsys: Capture) -> None:
    text = _shown(capsys, EXECUTED, "--layers")
    assert "an execution graph" in text
    assert "29 layers as a device ran them" in text
    # By hand: 8 + 14 + 71 + 14 + 4 + 121 + 6 + 2 + 6 + 2 + 72 + 3 + 6.
    assert "13 layers with a time, 329 µs in all" in text
    assert "brgconv_avx512_amx_bf16  conv0, relu1\n" in text
    assert "brgconv_avx512_amx_bf16" in text


def test_the_times_of_types(capsys: Capture) -> None:
    assert run(["inspect", str(EXECUTED), "--ops", "--json"]) == 0
    types = json.loads(capsys.readouterr().out)["types"]
    # By hand, from the file: two Convolutions of 71 and 121, one FullyConnected of 72, seven Reorders.
    assert types[:3] == [
        {"type": "Convolution", "layers": 2, "microseconds": 192},
        {"type": "FullyConnected", "layers": 1, "microseconds": 72},
        {"type": "Reorder", "layers": 7, "microseconds": 39},
    ]
    assert "FullyConnected" in _shown(capsys, EXECUTED, "--ops")


def test_an_execution_graph_has_no_weights(capsys: Capture) -> None:
    assert run(["inspect", str(EXECUTED), "--weights"]) == 2
    assert "an execution graph, which has no weights" in capsys.readouterr().err


def test_an_execution_graph_as_json(capsys: Capture) -> None:
    document = json.loads(_shown(capsys, EXECUTED, "--layers", "--json"))
    assert (document["execution_graph"], document["microseconds"]) == (True, 329)
    assert document["layers"][7] == {
        "id": 7,
        "name": "conv0/Convolution",
        "type": "Convolution",
        "microseconds": 71,
        "kernel": "brgconv_avx512_amx_bf16",
        "precision": "bf16",
        "outputs": ["bf16[1,16,8,8]"],
        "layouts": "acdb",
        "original": ["conv0/Convolution", "conv0", "relu1"],
    }
    assert document["layers"][0]["microseconds"] is None


@pytest.mark.parametrize(
    ("words", "types"),
    [
        (["conv"], {"Convolution", "GroupConvolution", "ConvolutionBackpropData", "BinaryConvolution", "FakeConvert"}),
        (["CONVOLUTIONBACK"], {"ConvolutionBackpropData", "GroupConvolutionBackpropData"}),
        (["gather"], {"Gather"}),
        (["gather", "conv"], {"Gather", "Convolution"}),
    ],
)
def test_ops_finds_parts_of_types_in_any_letter_case(words: list[str], types: set[str], capsys: Capture) -> None:
    assert run(["ops", *words, "--json"]) == 0
    found = {row["type"] for row in json.loads(capsys.readouterr().out)["operations"]}
    assert types <= found
    assert all(any(word.lower() in type.lower() for word in words) for type in found)
    assert "GatherND" not in found


def test_files_that_are_damaged_are_inspected_with_a_warning(capsys: Capture, tmp_path: Path) -> None:
    text = (DIGITS / "classifier.xml").read_text()
    model = tmp_path / "alone.xml"
    model.write_text(text)
    assert run(["inspect", str(model)]) == 0
    err = capsys.readouterr().err
    assert (
        err.startswith(f"warning: {model}: ")
        and "alone.bin does not exist; the contents of 7 constants are unknown" in err
    )
    model.write_text(re.sub("<edge [^>]*/>", "", text, count=1))
    assert run(["inspect", str(model), "--bin", str(DIGITS / "classifier.bin"), "--json"]) == 0
    out, err = capsys.readouterr()
    assert "layer 2 'conv0/Convolution' (Convolution): no edge arrives at input port 0; irexec validate lists" in err
    assert json.loads(out)["constants"] == 7
    for sound in (DIGITS / "classifier.xml", EXECUTED):
        assert run(["inspect", str(sound)]) == 0
        assert capsys.readouterr().err == ""
