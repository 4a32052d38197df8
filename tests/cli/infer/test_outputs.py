"""infer: inputs that are generated or piped, paths that are read, and what is written and compared."""

from __future__ import annotations

import io
import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

import irexec
from irexec.dtypes.elements import F32
from irexec.tools.run.input_sources import InputSource, parse_input_source
from tests.cli.calling import stderr
from tests.cli.infer.running import CLASSIFIER, Capture, contents, infer, values
from tests.support.paths import DIGITS

WRONG_OUTPUTS = [
    "model.xml", "model.bin", "out.json", "out.npy", "out", ".", "folder.npz", "input.npz", "link.npz",
    "reference.npz", "device.npz",
]  # fmt: skip


@pytest.mark.parametrize("name", WRONG_OUTPUTS)
def test_results_are_not_written_over_anything_else(name: str, folder: Path, capsys: Capture) -> None:
    before = contents(folder)
    source, reference = folder / "input.npz", folder / "reference.npz"
    _, err = infer(
        capsys, folder / "model.xml", "-i", source, "--assert", reference, "--atol", 1, "-o", folder / name, code=2
    )
    assert err.startswith("error: -o ") and err.count("\n") == 1
    assert contents(folder) == before


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["model.xml", "-i", "cycle.npz", "--dump-layers", "dump"], 3),
        (["model.xml", "-i", "cycle.npz", "-o", "results.npz"], 3),
        (["cycle.xml", "-i", "random", "-o", "results.npz"], 3),
        (["model.xml", "-i", "random", "-o", "cycle.npz"], 2),
        (["model.xml", "-i", "random", "--dump-layers", "cycle/dump"], 3),
    ],
)
def test_links_in_a_cycle(
    arguments: list[str], code: int, folder: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    for name in ("cycle", "cycle.npz", "cycle.xml"):
        Path(name).symlink_to(name)
    before = sorted(folder.iterdir())
    _, err = infer(capsys, *arguments, code=code)
    assert err.startswith("error: ") and "cycle" in err and err.count("\n") == 1
    assert sorted(folder.iterdir()) == before


def test_weights_of_another_name_are_not_written_over(folder: Path, capsys: Capture) -> None:
    (folder / "model.bin").rename(folder / "weights.npz")
    _, err = infer(
        capsys,
        folder / "model.xml",
        "--bin",
        folder / "weights.npz",
        "-i",
        "random",
        "-o",
        folder / "weights.npz",
        code=2,
    )
    assert "is the model's weights, which would be overwritten" in err


def test_results_may_replace_those_of_an_earlier_run(folder: Path, capsys: Capture) -> None:
    for seed in (1, 2):
        infer(capsys, folder / "model.xml", "-i", "random", "--seed", seed, "-o", folder / "out.npz")
    infer(capsys, folder / "model.xml", "-i", "random", "--seed", 2, "--assert", folder / "out.npz")


def test_tensor_names_come_first_and_what_is_not_common_is_listed(folder: Path, capsys: Capture) -> None:
    """IRs of other converters call their layers otherwise; tensor names stay."""
    path = folder / "model.xml"
    infer(capsys, path, "-i", "random", "--all", "-o", folder / "all.npz")
    text = path.read_text().replace('name="relu1" type', 'name="Relu_17" type')
    assert text.count("Relu_17") == 1
    (folder / "renamed.xml").write_text(text)
    shutil.copy(folder / "model.bin", folder / "renamed.bin")
    saved = dict(np.load(folder / "all.npz"))
    saved["nowhere"] = saved.pop("conv3")
    np.savez(folder / "all.npz", **saved)
    document = values(capsys, folder / "renamed.xml", "-i", "random", "--all", "--assert", folder / "all.npz")
    assert all(entry["agrees"] for entry in document["assert"])
    assert document["only_in_reference"] == ["nowhere"]
    assert document["only_in_results"] == ["conv3"]
    text, _ = infer(capsys, folder / "renamed.xml", "-i", "random", "--all", "--assert", folder / "all.npz")
    assert "only in the reference: nowhere" in text and "only in the results: conv3" in text


def test_nothing_in_common_is_wrong_usage(folder: Path, capsys: Capture) -> None:
    np.savez(folder / "other.npz", a=np.zeros(1), b=np.zeros(1))
    _, err = infer(capsys, folder / "model.xml", "-i", "random", "--assert", folder / "other.npz", code=2)
    assert "no array of" in err and "(a, b) has the name of a tensor or layer" in err


def test_a_mismatch_is_exit_code_1(folder: Path, capsys: Capture) -> None:
    assert (
        "differs"
        in infer(capsys, folder / "model.xml", "-i", "random", "--assert", folder / "reference.npz", code=1)[0]
    )


# infer: inputs that are generated, read from standard input or from a pipe.


@pytest.mark.parametrize(("source", "expected"), [("zeros", 0), ("ones", 1)])
def test_constant_inputs(source: str, expected: float, capsys: Capture) -> None:
    (line,) = values(capsys, CLASSIFIER, "-i", source, "--tensor", "image")["outputs"]
    assert (line["min"], line["max"], line["shape"]) == (expected, expected, [1, 1, 8, 8])


def test_sizes_that_are_not_known_are_chosen_within_their_bounds(tmp_path: Path, capsys: Capture) -> None:
    builder = irexec.Builder("m")
    builder.result(builder.emit("Relu", builder.parameter(F32, (irexec.Dim(), 3, irexec.Dim(2, 5)), "x")), "y")
    irexec.save_model(builder.model(), tmp_path / "m.xml")
    out, err = infer(capsys, tmp_path / "m.xml", "-i", "random", "--json")
    assert json.loads(out)["outputs"][0]["shape"] == [2, 3, 5]
    assert err.startswith("note: input x: f32[?,3,2..5] gets the shape [2,3,5]: ") and err.count("\n") == 1
    _, err = infer(capsys, tmp_path / "m.xml", "-i", "random", "--shape", "1,3,2")
    assert err == ""


def _stdin(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))


@pytest.mark.parametrize("option", ["-", "image=-"])
@pytest.mark.parametrize("kind", ["npy", "npz"])
def test_arrays_come_from_standard_input(
    option: str, kind: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    buffer, array = io.BytesIO(), np.full((1, 1, 8, 8), 0.5, np.float32)
    np.save(buffer, array) if kind == "npy" else np.savez(buffer, image=array)
    _stdin(monkeypatch, buffer.getvalue())
    (line,) = values(capsys, CLASSIFIER, "-i", option, "--tensor", "image")["outputs"]
    assert (line["min"], line["max"]) == (0.5, 0.5)


def test_standard_input_that_is_not_an_array(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    _stdin(monkeypatch, b"hello")
    assert "standard input: not a readable .npy" in infer(capsys, CLASSIFIER, "-i", "-", code=3)[1]
    assert "-i - is given twice" in infer(capsys, CLASSIFIER, "-i", "-", "-i", "a=-", code=2)[1]


def test_a_pipe_is_read_once(tmp_path: Path, capsys: Capture) -> None:
    np.save(tmp_path / "x.npy", np.full((1, 1, 8, 8), 0.5, np.float32))
    reading, writing = os.pipe()
    os.write(writing, (tmp_path / "x.npy").read_bytes())
    os.close(writing)
    (line,) = values(capsys, CLASSIFIER, "-i", f"/dev/fd/{reading}", "--tensor", "image")["outputs"]
    os.close(reading)
    assert line["mean"] == 0.5


def test_a_file_of_another_kind(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "v.mp4").write_bytes(b"\0\0\0\x20ftyp")
    _, err = infer(capsys, CLASSIFIER, "-i", tmp_path / "v.mp4", code=3)
    assert "not a readable .npy, .npz or image (.png, .jpg" in err


def _texts_model(path: Path, *shapes: tuple[int | irexec.Dim, ...]) -> Path:
    """Joins two strings of each input."""
    builder = irexec.Builder("m")
    for i, shape in enumerate(shapes):
        x = builder.parameter("string", shape, f"x{i}")
        builder.result(builder.emit("StringConcat", x, x, version="irexec"), f"y{i}")
    irexec.save_model(builder.model(), path)
    return path


def test_lines_of_a_text_file_are_strings(tmp_path: Path, capsys: Capture) -> None:
    model = _texts_model(tmp_path / "m.xml", (irexec.Dim(),), (), (2, irexec.Dim()))
    texts = {"a.txt": "ab\r\nyé\n", "b.txt": "one line", "c.txt": "1\n2\n\n4\n"}
    for name, text in texts.items():
        (tmp_path / name).write_bytes(text.encode())
    sources = [word for name in texts for word in ("-i", tmp_path / name)]
    lines = values(capsys, model, *sources)["outputs"]
    assert [(line["shape"], line["first"]) for line in lines] == [
        ([2], ["abab", "yéyé"]),
        ([], ["one lineone line"]),
        ([2, 2], ["11", "22", "", "44"]),
    ]
    out, _ = infer(capsys, model, *sources)
    assert "'abab', 'yéyé'" in out
    assert out.splitlines()[0].split()[-1] == "strings"


def test_text_files_that_do_not_fit(tmp_path: Path, capsys: Capture) -> None:
    model = _texts_model(tmp_path / "m.xml", (2,))
    (tmp_path / "a.txt").write_text("a\nb\nc\n", "utf-8")
    _, err = infer(capsys, model, "-i", tmp_path / "a.txt", code=2)
    assert "has shape [3], the model expects" in err
    (tmp_path / "b.txt").write_bytes(b"a\xe9\n")
    _, err = infer(capsys, model, "-i", tmp_path / "b.txt", code=3)
    assert err.endswith("b.txt: not a text in UTF-8: it has the byte 0xe9\n")
    _, err = infer(capsys, CLASSIFIER, "-i", tmp_path / "a.txt", code=3)
    assert "a.txt: not a readable .npy, .npz or image" in err


# Paths of files that are read: those with ``=``, files without a byte, models that may not be read, and labels that are
# not text.


MODEL = DIGITS / "classifier.xml"


@pytest.fixture
def equals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with arrays whose paths hold ``=``."""
    (tmp_path / "day=1").mkdir()
    for name in ("day=1/x.npy", "a=b.npy", "b.npy"):
        np.save(tmp_path / name, np.zeros((1, 1, 8, 8), np.float32))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("text", "name", "source"),
    [
        ("b.npy", None, "b.npy"),
        ("image=b.npy", "image", "b.npy"),
        ("a=b.npy", "a", "b.npy"),
        ("image=a=b.npy", "image=a", "b.npy"),
        ("./a=b.npy", "./a", "b.npy"),
        ("day=1/x.npy", None, "day=1/x.npy"),
        ("image=day=1/x.npy", "image", "day=1/x.npy"),
        ("a=b=day=1/x.npy", "a=b", "day=1/x.npy"),
        ("=day=1/x.npy", None, "day=1/x.npy"),
        ("day=1/y.npy", "day", "1/y.npy"),
        ("a=b=random", "a=b", "random"),
        ("a=b=-", "a=b", "-"),
        ("a=b=y.npy", "a=b", "y.npy"),
    ],
)
def test_names_and_paths_may_hold_equals_signs(text: str, name: str | None, source: str, equals: Path) -> None:
    assert parse_input_source(text) == InputSource(name, source)


@pytest.mark.parametrize("name", ["x.npy", "x.npz", "x", "x.png"])
def test_a_file_without_a_byte_is_said_to_be_empty(name: str, tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / name).touch()
    message = stderr(capsys, "infer", MODEL, "-i", tmp_path / name, code=3)
    assert "is empty" in message
    assert "b''" not in message


@pytest.mark.parametrize(
    "command",
    [
        ("inspect", "{}"), ("infer", "{}", "-i", "random"), ("convert", "{}"), ("validate", "{}"),
        ("ops", "--check", "{}"),
    ],
)  # fmt: skip
def test_a_model_that_may_not_be_read_is_not_wrong_usage(
    command: tuple[str, ...], tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes((DIGITS / "classifier.onnx").read_bytes())
    monkeypatch.setattr(os, "access", lambda *given, **more: False)

    def refuse(given: str | Path, *rest: object, **more: object) -> object:
        if str(given) == str(path):
            raise PermissionError(13, "Permission denied", str(given))
        return open(given, *rest, **more)

    monkeypatch.setattr("irexec.io.reading.open", refuse, raising=False)
    message = stderr(capsys, *(word.format(path) for word in command), code=3)
    assert f"{path}: cannot be read: Permission denied" in message


def test_labels_that_are_not_text(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "labels.txt").write_bytes(b"caf\xe9\n")
    message = stderr(capsys, "infer", MODEL, "-i", "random", "--topk", "1", "--labels", tmp_path / "labels.txt", code=3)
    assert message.endswith("labels.txt: not a list of labels in UTF-8: it has the byte 0xe9\n")
