"""infer: arrays as inputs, references and results."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import irexec
from irexec.cli.main import run
from tests.cli.calling import MODEL, Capture, stderr, stdout
from tests.support.paths import DIGITS, IRS


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


def test_inputs_by_name_file_and_npz(feeds: dict[str, Path], tmp_path: Path, capsys: Capture) -> None:
    for i, text in enumerate((f"x={feeds['x.npy']}", feeds["x.npy"], feeds["x.npz"], f"0={feeds['x.npy']}")):
        stdout(capsys, "infer", MODEL, "-i", text, "-o", tmp_path / f"{i}.npz")
    first = np.load(tmp_path / "0.npz")
    for i in range(1, 4):
        np.testing.assert_array_equal(np.load(tmp_path / f"{i}.npz")[first.files[0]], first[first.files[0]])


def test_assert_agrees_and_differs(feeds: dict[str, Path], tmp_path: Path, capsys: Capture) -> None:
    out = tmp_path / "out.npz"
    stdout(capsys, "infer", MODEL, "-i", feeds["x.npy"], "-o", out)
    assert "agrees" in stdout(capsys, "infer", MODEL, "-i", feeds["x.npy"], "--assert", out)
    name = np.load(out).files[0]
    np.savez(tmp_path / "other.npz", **{name: np.load(out)[name] + 1})
    assert "differs" in stdout(capsys, "infer", MODEL, "-i", feeds["x.npy"], "--assert", tmp_path / "other.npz", code=1)


def test_every_tensor(feeds: dict[str, Path], tmp_path: Path, capsys: Capture) -> None:
    lines = json.loads(stdout(capsys, "infer", MODEL, "-i", feeds["x.npy"], "--all", "--json"))["outputs"]
    assert {"Convolution_3", "Relu_6", "MaxPool_7:0"} <= {line["name"] for line in lines}
    assert run(["infer", str(MODEL), "-i", str(feeds["x.npy"]), "--dump-layers", str(tmp_path / "tensors")]) == 0
    index = json.loads((tmp_path / "tensors" / "index.json").read_text())
    assert {"Convolution_3", "Relu_6", "MaxPool_7:0"} <= {entry["name"] for entry in index["tensors"]}
    for entry in index["tensors"]:
        assert list(np.load(tmp_path / "tensors" / entry["file"]).shape) == entry["shape"]
    capsys.readouterr()
    text = stdout(
        capsys,
        "infer",
        MODEL,
        "-i",
        feeds["x.npy"],
        "--tensor",
        "Relu_6",
        "--tensor",
        "2",
        "--tensor",
        "MaxPool_7:0",
        "--json",
    )
    assert [line["name"] for line in json.loads(text)["outputs"]] == ["Relu_6", "2", "MaxPool_7:0"]


@pytest.mark.parametrize("name", ["file", "allow_pickle", "self", "a/b"])
def test_a_result_may_have_any_name(name: str, tmp_path: Path, capsys: Capture) -> None:
    builder = irexec.Builder("m")
    builder.result(builder.constant([1.0, 2.0], names=[name]))
    irexec.save_model(builder.model(), tmp_path / "m.xml")
    stdout(capsys, "infer", tmp_path / "m.xml", "-o", tmp_path / "out.npz")
    np.testing.assert_array_equal(np.load(tmp_path / "out.npz")[name], [1, 2])


def test_random_is_the_same_for_the_same_seed(capsys: Capture) -> None:
    first, again = (stdout(capsys, "infer", MODEL, "-i", "random", "--seed", 5, "--json") for _ in range(2))
    other = stdout(capsys, "infer", MODEL, "-i", "random", "--seed", 6, "--json")
    assert first == again != other


def test_shape_gives_dynamic_inputs_a_shape(capsys: Capture) -> None:
    text = stdout(
        capsys, "infer", IRS / "dynamic.xml", "-i", "random", "--shape", "x=4,2,3", "--shape", "any rank=5", "--json"
    )
    assert [line["shape"] for line in json.loads(text)["outputs"]] == [[4, 6], [5]]
    err = stderr(capsys, "infer", IRS / "dynamic.xml", "-i", "random")
    assert "the rank of input 'any rank' is not known: give it a shape with --shape \"any rank[...]\"" in err


def test_what_is_wrong_with_inputs_is_said(feeds: dict[str, Path], tmp_path: Path, capsys: Capture) -> None:
    def err(*arguments: object, code: int = 2) -> str:
        text = stderr(capsys, "infer", MODEL, *arguments, code=code)
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
    assert err("-i", tmp_path / "nowhere.npy", code=3).endswith("no such file\n")
    assert "rand: no such file, and not one of random, zeros, ones" in err("-i", "rand", code=3)
    assert "there is no tensor or layer 'Relu_7'; similar names are 'Relu_6'" in err(
        "-i", "random", "--tensor", "Relu_7"
    )
    assert "nowhere does not exist" in err("-i", "random", "-o", tmp_path / "nowhere" / "out.npz")
    assert "does not look like an image" in stderr(
        capsys, "infer", IRS / "names.xml", "-i", DIGITS / "digit_1.png", "--layout", "NCHW"
    )
    assert "not a readable image" in stderr(
        capsys, "infer", DIGITS / "classifier.xml", "-i", _not_an_image(tmp_path), code=3
    )


def _not_an_image(folder: Path) -> Path:
    (folder / "text.png").write_text("no image")
    return folder / "text.png"


def test_a_graph_that_cannot_take_a_shape(capsys: Capture) -> None:
    err = stderr(capsys, "infer", MODEL, "-i", "random", "--shape", "1,4,16,16")
    assert "the model does not take --shape [1,4,16,16]: layer 2" in err
    assert "data has 4 channels, the filter takes 3" in err


def test_what_would_do_nothing_is_refused(capsys: Capture, tmp_path: Path) -> None:
    def err(*arguments: object) -> str:
        return stderr(capsys, "infer", DIGITS / "classifier.xml", "-i", *arguments)

    assert "--labels is for --topk" in err("random", "--labels", DIGITS / "labels.txt")
    assert "--scale is for images" in err("random", "--scale", "255")
    assert "--layout is for images" in err("random", "--layout", "NCHW")
    assert "--rtol is for --assert" in err("random", "--rtol", "0.1")
    assert "no such option '--threds'; similar options are --threads" in err("random", "--threds", "1")
    assert "no such option '--batch'; --shape is the option for that" in err("random", "--batch", "1")
    assert "no such option '--fp16'; irexec edit --compress does that (see" in err("random", "--fp16")
    assert "--tensor selects tensors and --all selects every one" in err("random", "--tensor", "conv0", "--all")
    assert "-i random and -i zeros are both for all inputs that are left" in err("random", "-i", "zeros")
    assert "--mean has 3 values, the image has 1 channel\n" in err(DIGITS / "digit_1.png", "--mean", "1,2,3")
    assert "has a value that is not finite or is 0" in err(DIGITS / "digit_1.png", "--scale", "0")
    assert "has a value that is not finite" in err(DIGITS / "digit_1.png", "--mean", "nan")
    assert "the shape of 'image' is given twice" in err(
        "random", "--shape", "image=1,1,8,8", "--shape", "image=1,1,8,8"
    )
    assert "'Relu' cannot be given with it" in stderr(capsys, "ops", "Relu", "--check", MODEL)
    assert "there is no operation 'Gathr'; similar types are Gather" in stderr(capsys, "ops", "Gather", "Gathr")


def test_arrays_as_other_machines_write_them(capsys: Capture, tmp_path: Path) -> None:
    np.save(tmp_path / "big.npy", np.zeros((1, 1, 8, 8), ">f4"))
    assert "[1,10]" in stdout(capsys, "infer", DIGITS / "classifier.xml", "-i", tmp_path / "big.npy")
    assert "names no file" in stderr(capsys, "infer", DIGITS / "classifier.xml", "-i", "image=")
    np.savez(tmp_path / "none.npz")
    err = stderr(capsys, "infer", DIGITS / "classifier.xml", "-i", "random", "--assert", tmp_path / "none.npz")
    assert "none.npz has no arrays to compare with" in err


def test_results_that_cannot_be_written_leave_nothing(capsys: Capture, tmp_path: Path) -> None:
    (tmp_path / "folder.npz").mkdir()
    err = stderr(capsys, "infer", MODEL, "-i", "random", "-o", tmp_path / "folder.npz")
    assert err == f"error: -o {tmp_path / 'folder.npz'} is a folder, not a regular file\n"
    assert [path.name for path in tmp_path.iterdir()] == ["folder.npz"]


def test_saved_inputs_are_those_of_the_run(tmp_path: Path, capsys: Capture) -> None:
    saved, first, second = (tmp_path / name for name in ("in.npz", "first.npz", "second.npz"))
    stdout(capsys, "infer", MODEL, "-i", "random", "--seed", 3, "--save-inputs", saved, "-o", first)
    stdout(capsys, "infer", MODEL, "-i", saved, "-o", second)
    with np.load(first) as one, np.load(second) as other:
        assert one.files == other.files
        for name in one.files:
            np.testing.assert_array_equal(one[name], other[name])


def test_precision(tmp_path: Path, capsys: Capture) -> None:
    """(x + 1000) - 1000 in f16, whose values are half apart there; internal tensors and results keep their type."""
    b = irexec.Builder("half")
    large = b.constant(np.float16(1000), "f16")
    b.result(b.emit("Subtract", b.emit("Add", b.parameter("f16", (2,), "x"), large, name="sum"), large, name="y"))
    irexec.save_model(b.model(), tmp_path / "m.xml")
    np.save(tmp_path / "x.npy", np.float16([1 / 3, 0.1]))
    for options, expected in (((), np.float16([1 / 3, 0.1])), (("--precision", "as-written"), np.float16([0.5, 0]))):
        text = stdout(
            capsys,
            "infer",
            tmp_path / "m.xml",
            "-i",
            tmp_path / "x.npy",
            "-o",
            tmp_path / "y.npz",
            "--all",
            "--json",
            *options,
        )
        assert [one["name"] for one in json.loads(text)["outputs"]] == ["sum", "y"]
        with np.load(tmp_path / "y.npz") as file:
            assert file["sum"].dtype == np.float16
            np.testing.assert_allclose(file["y"], expected, atol=1e-4)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda x: x[:, ::-1], "with reversed channels (RGB and BGR)"),
        (lambda x: x * 255, "divided by 255"),
        (lambda x: x / 255, "multiplied by 255"),
        (lambda x: x.transpose(0, 2, 3, 1).reshape(x.shape), "with its elements in the order N,H,W,C"),
        (lambda x: (x * np.float32(0.226)) + np.float32(0.45), ""),
    ],
    ids=["reversed", "255", "1/255", "order", "another"],
)
def test_a_usual_change_of_an_image_is_named(
    change: Callable[[np.ndarray], np.ndarray], text: str, tmp_path: Path, capsys: Capture
) -> None:
    """The values of the reference come from NumPy alone."""
    builder = irexec.Builder("m")
    x = builder.parameter("f32", (1, 3, 4, 5), "x")
    weights = builder.constant(np.arange(1, 61, dtype=np.float32).reshape(1, 3, 4, 5))
    builder.result(builder.emit("Multiply", x, weights), "y")
    irexec.save_model(builder.model(), tmp_path / "m.xml")
    image = np.random.default_rng(0).random((1, 3, 4, 5)).astype(np.float32)
    np.savez(tmp_path / "ref.npz", y=image * np.arange(1, 61, dtype=np.float32).reshape(1, 3, 4, 5))
    np.save(tmp_path / "x.npy", np.ascontiguousarray(change(image)))
    run = ("infer", tmp_path / "m.xml", "-i", tmp_path / "x.npy", "--assert", tmp_path / "ref.npz", "--json")
    found = json.loads(stdout(capsys, *run, code=1))
    assert found["change"] == (f"the reference is that of input 'x' {text}" if text else "")


def test_an_array_in_the_other_layout(tmp_path: Path, capsys: Capture) -> None:
    builder = irexec.Builder("m")
    builder.result(builder.emit("Relu", builder.parameter("f32", (1, 3, 4, 5), "x")), "y")
    irexec.save_model(builder.model(), tmp_path / "m.xml")
    np.save(tmp_path / "x.npy", np.zeros((1, 4, 5, 3), np.float32))
    text = stderr(capsys, "infer", tmp_path / "m.xml", "-i", tmp_path / "x.npy", code=2)
    assert "it looks like NHWC: transpose it by (0, 3, 1, 2)" in " ".join(text.split())
