"""The command line as its users meet it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest

import irexec
from irexec.cli.main import run
from tests.support.onnx_models import model_of

DIGITS = Path(__file__).parent.parent.parent / "samples" / "digits"
IRS = Path(__file__).parent.parent / "data" / "openvino"
Capture = pytest.CaptureFixture[str]


def said(capsys: Capture, *arguments: object, code: int = 0) -> str:
    """What a command writes to stdout."""
    assert run([str(argument) for argument in arguments]) == code
    return capsys.readouterr().out


def complained(capsys: Capture, *arguments: object, code: int = 2) -> str:
    """What a command that fails writes to stderr, which is no traceback."""
    assert run([str(argument) for argument in arguments]) == code
    err = capsys.readouterr().err
    assert "Traceback" not in err
    return err


def test_help_reads_well(capsys: Capture) -> None:
    text = said(capsys, "--help")
    for command in ("infer", "validate", "inspect", "convert", "ops"):
        assert command in text
        assert "Usage: irexec" in said(capsys, command, "--help")


@pytest.mark.parametrize("how", [["-m", "irexec"], ["-c", "from irexec.cli.main import main; main()"]])
def test_it_is_a_program(how: list[str]) -> None:
    done = subprocess.run([sys.executable, *how, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"irexec, version {irexec.__version__}"


@pytest.mark.parametrize("digit", range(10))
def test_the_classifier_reads_digits_it_has_never_seen(digit: int, capsys: Capture) -> None:
    text = said(capsys, "infer", DIGITS / "classifier.xml", "-i", DIGITS / f"digit_{digit}.png", "--scale", 255, "--topk", 1, "--json")
    (best,) = json.loads(text)["topk"]
    assert best["index"] == digit
    assert best["score"] > 0.5


@pytest.mark.parametrize("digit", [3, 8])
def test_the_denoiser_and_its_twin_give_the_same_image(digit: int, tmp_path: Path, capsys: Capture) -> None:
    for name in ("denoiser", "denoiser_onednn"):
        said(capsys, "infer", DIGITS / f"{name}.xml", "-i", DIGITS / f"noisy_{digit}.png", "--scale", 255, "-o", tmp_path / f"{name}.npz")
    one, other = (np.load(tmp_path / f"{name}.npz")["cleaned"] for name in ("denoiser", "denoiser_onednn"))
    np.testing.assert_allclose(one, other, atol=1e-6)
    clean, noisy = (_image(DIGITS / f"{kind}_{digit}.png") for kind in ("digit", "noisy"))
    assert np.square(one - clean).mean() < 0.8 * np.square(noisy - clean).mean()


def _image(path: Path) -> np.ndarray:
    from PIL import Image

    return np.asarray(Image.open(path), np.float32)[None, None] / 255


def test_sample_irs_are_what_the_converter_makes(tmp_path: Path, capsys: Capture) -> None:
    said(capsys, "convert", DIGITS / "classifier.onnx", "-o", tmp_path / "m.xml", "--verify")
    result = said(capsys, "infer", tmp_path / "m.xml", "-i", DIGITS / "digit_7.png", "--scale", 255, "--topk", 1, "--json")
    assert json.loads(result)["topk"][0]["index"] == 7


def test_the_damaged_sample(capsys: Capture) -> None:
    text = said(capsys, "validate", DIGITS / "damaged.xml", code=1)
    for code in ("IR103", "IR013", "IR107", "IR401", "IR011"):
        assert code in text


@pytest.fixture
def feeds(tmp_path: Path) -> dict[str, Path]:
    x = np.random.default_rng(0).random((1, 3, 16, 16), np.float32)
    np.save(tmp_path / "x.npy", x)
    np.savez(tmp_path / "x.npz", x=x)
    np.savez(tmp_path / "odd.npz", y=x)
    np.save(tmp_path / "wide.npy", np.zeros((1, 4, 16, 16), np.float32))
    np.save(tmp_path / "double.npy", x.astype(np.float64) + 1e-12)
    (tmp_path / "cut.npz").write_bytes((tmp_path / "x.npz").read_bytes()[:40])
    return {path.stem + path.suffix: path for path in tmp_path.iterdir()}


MODEL = IRS / "convolutions.xml"


def test_inputs_by_name_file_and_npz(feeds: dict[str, Path], tmp_path: Path, capsys: Capture) -> None:
    for i, text in enumerate((f"x={feeds['x.npy']}", feeds["x.npy"], feeds["x.npz"], f"0={feeds['x.npy']}")):
        said(capsys, "infer", MODEL, "-i", text, "-o", tmp_path / f"{i}.npz")
    first = np.load(tmp_path / "0.npz")
    for i in range(1, 4):
        np.testing.assert_array_equal(np.load(tmp_path / f"{i}.npz")[first.files[0]], first[first.files[0]])


def test_assert_agrees_and_differs(feeds: dict[str, Path], tmp_path: Path, capsys: Capture) -> None:
    out = tmp_path / "out.npz"
    said(capsys, "infer", MODEL, "-i", feeds["x.npy"], "-o", out)
    assert "agrees" in said(capsys, "infer", MODEL, "-i", feeds["x.npy"], "--assert", out)
    name = np.load(out).files[0]
    np.savez(tmp_path / "other.npz", **{name: np.load(out)[name] + 1})
    assert "differs" in said(capsys, "infer", MODEL, "-i", feeds["x.npy"], "--assert", tmp_path / "other.npz", code=1)


def test_every_tensor(feeds: dict[str, Path], tmp_path: Path, capsys: Capture) -> None:
    lines = json.loads(said(capsys, "infer", MODEL, "-i", feeds["x.npy"], "--all", "--json"))["outputs"]
    assert {"Convolution_3", "Relu_6", "MaxPool_7:0"} <= {line["name"] for line in lines}
    assert run(["infer", str(MODEL), "-i", str(feeds["x.npy"]), "--dump-layers", str(tmp_path / "tensors")]) == 0
    index = json.loads((tmp_path / "tensors" / "index.json").read_text())
    assert {"Convolution_3", "Relu_6", "MaxPool_7:0"} <= {entry["name"] for entry in index["tensors"]}
    for entry in index["tensors"]:
        assert list(np.load(tmp_path / "tensors" / entry["file"]).shape) == entry["shape"]
    capsys.readouterr()
    text = said(capsys, "infer", MODEL, "-i", feeds["x.npy"], "--tensor", "Relu_6", "--tensor", "2", "--tensor", "MaxPool_7:0", "--json")
    assert [line["name"] for line in json.loads(text)["outputs"]] == ["Relu_6", "2", "MaxPool_7:0"]


@pytest.mark.parametrize("name", ["file", "allow_pickle", "self", "a/b"])
def test_a_result_may_have_any_name(name: str, tmp_path: Path, capsys: Capture) -> None:
    builder = irexec.Builder("m")
    builder.result(builder.constant([1.0, 2.0], names=[name]))
    irexec.save_model(builder.model(), tmp_path / "m.xml")
    said(capsys, "infer", tmp_path / "m.xml", "-o", tmp_path / "out.npz")
    np.testing.assert_array_equal(np.load(tmp_path / "out.npz")[name], [1, 2])


def test_random_is_the_same_for_the_same_seed(capsys: Capture) -> None:
    first, again = (said(capsys, "infer", MODEL, "-i", "random", "--seed", 5, "--json") for _ in range(2))
    other = said(capsys, "infer", MODEL, "-i", "random", "--seed", 6, "--json")
    assert first == again != other


def test_shape_gives_dynamic_inputs_a_shape(capsys: Capture) -> None:
    text = said(capsys, "infer", IRS / "dynamic.xml", "-i", "random", "--shape", "x=4,2,3", "--shape", "any rank=5", "--json")
    assert [line["shape"] for line in json.loads(text)["outputs"]] == [[4, 6], [5]]
    err = complained(capsys, "infer", IRS / "dynamic.xml", "-i", "random")
    assert "the rank of input 'any rank' is not known: give it a shape with --shape \"any rank[...]\"" in err


def test_what_is_wrong_with_inputs_is_said(feeds: dict[str, Path], tmp_path: Path, capsys: Capture) -> None:
    def err(*arguments: object, code: int = 2) -> str:
        text = complained(capsys, "infer", MODEL, *arguments, code=code)
        assert text.count("\n") == 1
        return text

    assert "no value is given for 'x': the model has x: f32[1,3,16,16]" in err()
    assert "there is no input 'z': the model has x" in err("-i", f"z={feeds['x.npy']}")
    assert "there is no input 'y'" in err("-i", feeds["odd.npz"])
    assert "has shape [1,4,16,16], the model expects x: f32[1,3,16,16]" in err("-i", feeds["wide.npy"])
    assert "is float64, the model expects float32" in err("-i", feeds["double.npy"])
    assert "no input left" in err("-i", feeds["x.npy"], "-i", feeds["x.npy"])
    assert "given twice" in err("-i", f"x={feeds['x.npy']}", "-i", f"x={feeds['x.npy']}")
    assert "is damaged: File is not a zip file" in err("-i", feeds["cut.npz"], code=3)
    assert "no such file" in err("-i", tmp_path / "nowhere.npy", code=3)
    assert "there is no tensor or layer 'Relu_7'; similar names are 'Relu_6'" in err("-i", "random", "--tensor", "Relu_7")
    assert "nowhere does not exist" in err("-i", "random", "-o", tmp_path / "nowhere" / "out.npz")
    assert "does not look like an image" in complained(capsys, "infer", IRS / "names.xml", "-i", DIGITS / "digit_1.png", "--layout", "NCHW")
    assert "not a readable image" in complained(capsys, "infer", DIGITS / "classifier.xml", "-i", _not_an_image(tmp_path), code=3)


def _not_an_image(folder: Path) -> Path:
    (folder / "text.png").write_text("no image")
    return folder / "text.png"


def test_a_graph_that_cannot_take_a_shape(capsys: Capture) -> None:
    err = complained(capsys, "infer", MODEL, "-i", "random", "--shape", "1,4,16,16")
    assert "the model does not take --shape [1,4,16,16]: layer 2" in err
    assert "data has 4 channels, the filter takes 3" in err


def test_inspect(capsys: Capture) -> None:
    text = said(capsys, "inspect", MODEL, "--layers", "--ops", "--weights")
    for part in ("convolutions", "Convolution_3", "f32[1,8,16,16]", "Convolution-1", "Constant_4"):
        assert part in text
    document = json.loads(said(capsys, "inspect", MODEL, "--layers", "--ops", "--weights", "--json"))
    assert document["schema"] == 1
    assert document["layers"][2]["outputs"] == ["f32[1,8,16,16]"]


def test_ops(capsys: Capture, tmp_path: Path) -> None:
    assert "Convolution" in said(capsys, "ops")
    assert "batch_dims" in said(capsys, "ops", "Gather")
    assert "everything is supported" in said(capsys, "ops", "--check", MODEL)
    text = MODEL.read_text().replace('type="ReLU"', 'type="Frobnicate"')
    (tmp_path / "m.xml").write_text(text)
    shutil.copy(MODEL.with_suffix(".bin"), tmp_path / "m.bin")
    assert "Frobnicate of opset1 is not supported" in said(capsys, "ops", "--check", tmp_path / "m.xml", code=4)
    assert "there is no operation" in complained(capsys, "ops", "Frobnicate")


def test_wrong_usage(capsys: Capture, tmp_path: Path) -> None:
    complained(capsys, "frobnicate")
    complained(capsys, "infer")
    complained(capsys, "infer", MODEL, "--topk", "0")
    complained(capsys, "infer", MODEL, "--mean", "a,b")
    complained(capsys, "convert", DIGITS / "classifier.onnx", "-o", tmp_path / "m.txt")
    assert "cannot be read" in complained(capsys, "validate", tmp_path / "nowhere.xml", code=3)


def test_converting_what_is_no_model(capsys: Capture, tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(b"\x00\x01 no model")
    assert "not an ONNX model" in complained(capsys, "convert", tmp_path / "m.onnx", code=3)
    assert "cannot be read" in complained(capsys, "convert", tmp_path / "nowhere.onnx", code=3)
    assert "input 'z' does not exist" in complained(
        capsys, "convert", DIGITS / "classifier.onnx", "-o", tmp_path / "m.xml", "--input", "z[1]"
    )
    assert list(tmp_path.glob("*.xml")) == []


def test_what_the_converter_warns_of_is_a_line(capsys: Capture, tmp_path: Path) -> None:
    graph = "(float[1,1,4] x, float[1,2,3] o) => (float[1,1,3] y) { [d] y = DeformConv(x, w, o) }"
    onnx.save(model_of(graph, 22, w=np.ones((1, 1, 2), np.float32)), tmp_path / "m.onnx")
    assert run(["convert", str(tmp_path / "m.onnx")]) == 0
    assert capsys.readouterr().err.startswith("warning: DeformConv 'd' over 1 spatial axes")


def as_program(*arguments: object, **how: object) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own."""
    words = [sys.executable, "-c", "from irexec.cli.main import main; main()", *map(str, arguments)]
    return subprocess.run(words, text=True, stderr=subprocess.PIPE, check=False, **how)


@pytest.mark.parametrize(
    ("arguments", "code"), [(["ops"], 0), (["ops", "--json"], 0), (["--help"], 0), (["validate", DIGITS / "damaged.xml"], 1)]
)
def test_a_pipe_that_nobody_reads_leaves_the_exit_code_true(arguments: list[object], code: int) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = as_program(*arguments, stdout=writing)
    os.close(writing)
    assert (done.returncode, done.stderr) == (code, "")


def test_a_closed_stdout_is_no_error() -> None:
    """Python has None for it then."""
    words = [sys.executable, "-c", "import sys; sys.stdout = None; from irexec.cli.main import main; main()", "ops"]
    done = subprocess.run(words, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("arguments", "code", "kind"),
    [
        (["infer", "nowhere.xml", "--json"], 3, "ModelError"),
        (["infer", MODEL, "--json"], 2, "InputError"),
        (["infer", "--json"], 2, "UsageError"),
        (["inspect", "nowhere.xml", "--json"], 3, "ModelError"),
        (["validate", "nowhere.xml", "--json"], 3, "ModelError"),
        (["validate", "nowhere.xml", "--format", "json"], 3, "ModelError"),
        (["convert", "nowhere.onnx", "--json"], 3, "ConversionError"),
        (["ops", "Gathr", "--json"], 2, "InputError"),
    ],
)
def test_errors_are_documents_too(arguments: list[object], code: int, kind: str, capsys: Capture) -> None:
    document = json.loads(said(capsys, *arguments, code=code))
    assert document["schema"] == 1
    assert document["error"]["type"] == kind
    assert document["error"]["exit_code"] == code
    assert document["error"]["message"]


def test_what_would_do_nothing_is_refused(capsys: Capture, tmp_path: Path) -> None:
    def err(*arguments: object) -> str:
        return complained(capsys, "infer", DIGITS / "classifier.xml", "-i", *arguments)

    assert "--labels is for --topk" in err("random", "--labels", DIGITS / "labels.txt")
    assert "--scale is for images" in err("random", "--scale", "255")
    assert "--layout is for images" in err("random", "--layout", "NCHW")
    assert "--rtol is for --assert" in err("random", "--rtol", "0.1")
    assert "no such option '--threds'; similar options are --threads" in err("random", "--threds", "1")
    assert "--tensor names the tensors to give, --all gives every one" in err("random", "--tensor", "conv0", "--all")
    assert "-i random and -i zeros are both for all inputs that are left" in err("random", "-i", "zeros")
    assert "--mean has 3 values, the image has 1 channel\n" in err(DIGITS / "digit_1.png", "--mean", "1,2,3")
    assert "has a value that is not finite or is 0" in err(DIGITS / "digit_1.png", "--scale", "0")
    assert "has a value that is not finite" in err(DIGITS / "digit_1.png", "--mean", "nan")
    assert "the shape of 'image' is given twice" in err("random", "--shape", "image=1,1,8,8", "--shape", "image=1,1,8,8")
    assert "'Relu' cannot be given with it" in complained(capsys, "ops", "Relu", "--check", MODEL)
    assert "there is no operation 'Gathr'; similar types are Gather" in complained(capsys, "ops", "Gather", "Gathr")


def test_files_of_another_kind_are_named_for_what_they_are(capsys: Capture, tmp_path: Path) -> None:
    assert "is an ONNX model: it has no .bin" in complained(capsys, "inspect", DIGITS / "classifier.onnx", "--no-mmap")
    assert "probably an IR, which needs no conversion" in complained(capsys, "convert", DIGITS / "classifier.xml", code=3)
    err = complained(capsys, "infer", DIGITS / "classifier.xml", "-i", DIGITS / "labels.txt", code=3)
    assert (
        "not a readable .npy, .npz or image (.png, .jpg, .jpeg, .bmp, .gif, .webp, .tif, .tiff, .ppm, .pgm, .pbm): it starts with b'zero"
        in err
    )
    err = complained(capsys, "infer", DIGITS / "classifier.xml", "-i", "random", "--bin", tmp_path, code=3)
    assert f"{tmp_path}: cannot be read: {tmp_path.name} is a folder" in err
    np.savez(tmp_path / "odd.npz", y=np.zeros(1))
    err = complained(capsys, "infer", DIGITS / "classifier.xml", "-i", tmp_path / "odd.npz")
    assert "odd.npz: there is no input 'y'" in err


def test_arrays_as_other_machines_write_them(capsys: Capture, tmp_path: Path) -> None:
    np.save(tmp_path / "big.npy", np.zeros((1, 1, 8, 8), ">f4"))
    assert "[1,10]" in said(capsys, "infer", DIGITS / "classifier.xml", "-i", tmp_path / "big.npy")
    assert "names no file" in complained(capsys, "infer", DIGITS / "classifier.xml", "-i", "image=")
    np.savez(tmp_path / "none.npz")
    err = complained(capsys, "infer", DIGITS / "classifier.xml", "-i", "random", "--assert", tmp_path / "none.npz")
    assert "none.npz has no arrays to compare with" in err


def test_results_that_cannot_be_written_leave_nothing(capsys: Capture, tmp_path: Path) -> None:
    (tmp_path / "folder.npz").mkdir()
    err = complained(capsys, "infer", MODEL, "-i", "random", "-o", tmp_path / "folder.npz")
    assert err == f"error: -o {tmp_path / 'folder.npz'} is a folder, not a regular file\n"
    assert [path.name for path in tmp_path.iterdir()] == ["folder.npz"]


@pytest.mark.parametrize(("name", "code"), [("SIGTERM", 143), ("SIGINT", 130)])
def test_a_signal_in_the_middle_of_writing_leaves_nothing(name: str, code: int, tmp_path: Path) -> None:
    """The process signals itself when the files are open and half-written."""
    program = f"""
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # A shell lets what runs in the background ignore it.
from irexec.cli.main import main
from irexec.io.writer import Writer

written = Writer.document

def stopped(self, *arguments):
    written(self, *arguments)
    signal.raise_signal(signal.{name})

Writer.document = stopped
main()
"""
    words = [sys.executable, "-c", program, "convert", str(DIGITS / "classifier.onnx"), "-o", str(tmp_path / "m.xml")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == code
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_constant_that_cannot_be_read_is_named(capsys: Capture) -> None:
    assert run(["inspect", str(DIGITS / "damaged.xml"), "--weights"]) == 3
    out, err = capsys.readouterr()
    assert out == ""
    assert err == "error: layer 15 'dense6.w' (Constant, line 273): has 5120 bytes, f64[128,10] takes 10240\n"


def test_nothing_trails_in_a_file(capsys: Capture) -> None:
    for text in (said(capsys, "ops"), said(capsys, "infer", MODEL, "-i", "random")):
        assert text.splitlines() == [line.rstrip() for line in text.splitlines()]


def test_texts_are_called_strings(capsys: Capture) -> None:
    outputs = json.loads(said(capsys, "infer", IRS / "operations" / "text.xml", "-i", "random", "--json"))["outputs"]
    kinds = {output["type"] for output in outputs}
    assert "string" in kinds
    assert "object" not in kinds


def test_debug_may_stand_anywhere(capsys: Capture) -> None:
    for arguments in (["--debug", "infer", "nowhere.xml"], ["infer", "nowhere.xml", "--debug"]):
        assert run(arguments) == 3
        assert "Traceback" in capsys.readouterr().err


def test_converting_as_json(capsys: Capture, tmp_path: Path) -> None:
    text = said(capsys, "convert", DIGITS / "classifier.onnx", "-o", tmp_path / "m.xml", "--verify", "--json")
    document = json.loads(text)
    assert (document["schema"], document["warnings"]) == (1, [])
    assert [output["agrees"] for output in document["verify"]["outputs"]] == [True]


def test_one_run_is_not_plural(capsys: Capture) -> None:
    assert "(median of 1 run, " in said(capsys, "profile", DIGITS / "classifier.xml", "--runs", "1")
