"""What can be given as a model and as weights, and what is said of anything else."""

from __future__ import annotations

import io as streams
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irexec

WEIGHTS = np.array([1, 2], np.float32)
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 305376\n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """x + [1, 2] in a file."""
    builder = irexec.Builder("m")
    x = builder.parameter(irexec.f32, (2,), "x")
    builder.result(builder.emit("Add", x, builder.constant([1.0, 2.0], name="c"), name="y"))
    irexec.save_model(builder.model(), tmp_path / "m.xml")
    return tmp_path / "m.xml"


MODELS: dict[str, Callable[[Path], Any]] = {
    "path": lambda path: path,
    "text of a path": str,
    "bytes": Path.read_bytes,
    "bytearray": lambda path: bytearray(path.read_bytes()),
    "memoryview": lambda path: memoryview(path.read_bytes()),
    "BytesIO": lambda path: streams.BytesIO(path.read_bytes()),
    "file": lambda path: path.open("rb"),
}
BINS: dict[str, Callable[[Path], Any]] = MODELS | {
    "array": lambda path: np.frombuffer(path.read_bytes(), np.float32),
    "array of bytes": lambda path: np.frombuffer(path.read_bytes(), np.uint8),
}


@pytest.mark.parametrize("weights", BINS.values(), ids=BINS)
@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_all_forms_give_the_same_model(
    model: Callable[[Path], Any], weights: Callable[[Path], Any], path: Path
) -> None:
    with ExitStack() as files:
        given = [form(file) for form, file in ((model, path), (weights, path.with_suffix(".bin")))]
        for one in given:
            if isinstance(one, streams.IOBase):
                files.enter_context(one)
        read = irexec.read_model(*given)
        assert irexec.validate(read) == []
        np.testing.assert_array_equal(irexec.compile_model(read)([np.zeros(2, np.float32)])[0], WEIGHTS)


REFUSED: list[tuple[Any, Any, type[irexec.IrexecError], str]] = [
    (b"<net/>", np.array([None]), irexec.InputError, "the weights are an array of objects"),
    (5, None, irexec.InputError, "the model is a int, expected a path, bytes or a file open for reading bytes"),
    (None, None, irexec.InputError, "the model is a NoneType, expected a path"),
    ("<net/>", None, irexec.InputError, "the model is XML text, expected a path or bytes"),
    (streams.StringIO("<net/>"), None, irexec.InputError, "the model is a file open for reading text"),
    (b"<net/>", 5, irexec.InputError, "the weights is a int, expected a path"),
    (b"<net/>", streams.StringIO(), irexec.InputError, "the weights is a file open for reading text"),
    (b"<net/>", "none.bin", irexec.ModelError, "the weights 'none.bin' cannot be read: none.bin does not exist"),
    (b"", None, irexec.ModelError, "<bytes>: contains no XML element"),
    (b"PK\3\4", None, irexec.ModelError, "<bytes>: not XML"),
    (POINTER, None, irexec.ModelError, "<bytes> is a Git LFS pointer (size 305376): run git lfs pull"),
    (b'<net version="12"/>', None, irexec.ModelError, "IR version '12' is not supported; 2 to 7, 10 and 11 are"),
]


@pytest.mark.parametrize(("model", "weights", "error", "message"), REFUSED, ids=[row[3][-40:] for row in REFUSED])
def test_anything_else_is_refused_in_a_sentence(
    model: Any,
    weights: Any,
    error: type[irexec.IrexecError],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error) as raised:
        irexec.read_model(model, weights)
    assert message in str(raised.value)


def test_a_closed_file_is_refused(path: Path) -> None:
    with open(path, "rb") as file:
        pass
    with pytest.raises(irexec.ModelError, match=r"cannot be read from .*closed file"):
        irexec.read_model(file)


def test_a_model_that_is_a_pointer(path: Path) -> None:
    path.write_bytes(POINTER)
    with pytest.raises(irexec.ModelError, match=r"m.xml is a Git LFS pointer \(size 305376\): run git lfs pull"):
        irexec.read_model(path)


def _truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:5])


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


DEFECTS: dict[str, tuple[Callable[[Path], Any], str, str]] = {
    "missing": (Path.unlink, "IR022", "m.bin does not exist; the contents of the constant 'c' are unknown"),
    "folder": (_folder, "IR022", "m.bin is a folder, not a regular file; the contents of the constant 'c' are unknown"),
    "pointer": (
        lambda path: path.write_bytes(POINTER),
        "IR022",
        "m.bin is a Git LFS pointer (size 305376): run git lfs pull; the contents of the constant 'c' are unknown",
    ),
    "truncated": (_truncate, "IR021", "m.bin has 5 bytes: those of this constant are not among them (8 bytes are needed)"),
    "empty": (lambda path: path.write_bytes(b""), "IR021", "m.bin has 0 bytes: those of this constant are not among them (8 bytes are needed)"),
}  # fmt: skip


@pytest.mark.parametrize(("damage", "code", "message"), DEFECTS.values(), ids=DEFECTS)
def test_a_bin_that_cannot_be_read_is_one_finding(
    damage: Callable[[Path], Any], code: str, message: str, path: Path
) -> None:
    damage(path.with_suffix(".bin"))
    model = irexec.read_model(path)
    for weights in (False, True):
        assert [(finding.code, finding.message) for finding in irexec.validate(model, weights=weights)] == [
            (code, message)
        ]
    assert (str(model.inputs[0]), str(model.outputs[0])) == ("x: f32[2]", "y: f32[2]")
    with pytest.raises(irexec.ModelError, match=message.split(";")[0].split(" (")[0]):
        irexec.compile_model(model)


def test_a_bin_without_permission(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: str | Path, mode: str, **options: Any) -> Any:
        if Path(path).suffix == ".bin":
            raise PermissionError(13, "Permission denied")
        return open(path, mode, **options)

    monkeypatch.setattr("irexec.io.reading.open", refuse, raising=False)
    messages = [finding.message for finding in irexec.validate(irexec.read_model(path))]
    assert messages == ["m.bin cannot be read: Permission denied; the contents of the constant 'c' are unknown"]


def test_constants_inside_of_a_truncated_bin_can_be_read(tmp_path: Path) -> None:
    builder = irexec.Builder("m")
    total = builder.parameter(irexec.f32, (2,), "x")
    for i in range(4):
        total = builder.emit("Add", total, builder.constant(np.float32([i, i]), name=f"c{i}"))
    builder.result(total)
    irexec.save_model(builder.model(), tmp_path / "m.xml")
    (tmp_path / "m.bin").write_bytes((tmp_path / "m.bin").read_bytes()[:17])
    model = irexec.read_model(tmp_path / "m.xml")
    (finding,) = irexec.validate(model, weights=True)
    assert (finding.code, finding.layer_name) == ("IR021", "c2")
    assert (
        finding.message
        == "m.bin has 17 bytes: those of this constant are not among them, nor those of 1 more constant (32 bytes are needed)"
    )
    readable = [
        node.constant.raw.view(np.float32).tolist()
        for node in model.nodes
        if node.constant and node.constant.is_readable
    ]
    assert readable == [[0, 0], [1, 1]]
