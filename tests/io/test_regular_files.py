"""What is read must be a regular file: a FIFO would block for ever, a device may never end. What is written must be one, or not exist yet."""

from __future__ import annotations

import os
import signal
import socket
import stat
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import irexec
from irexec.cli.main import run
from irexec.tools.arrays.files import open_arrays
from irexec.tools.run.results import read_labels
from tests.support.paths import DIGITS

Capture = pytest.CaptureFixture[str]
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no FIFOs, devices and alarms")


def _fifo(path: Path) -> str:
    os.mkfifo(path)
    return "a FIFO"


def _socket(path: Path) -> str:
    with socket.socket(socket.AF_UNIX) as made:
        here = os.open(".", os.O_RDONLY)
        os.chdir(path.parent)  # The name of a socket has at most 107 bytes.
        try:
            made.bind(path.name)
        finally:
            os.fchdir(here)
            os.close(here)
    return "a socket"


def _device(path: Path) -> str:
    path.symlink_to("/dev/zero")
    return "a device"


def _folder(path: Path) -> str:
    path.mkdir()
    return "a folder"


KINDS = [_fifo, _socket, _device, _folder]


def _as_model(path: Path) -> None:
    irexec.read_model(path)


def _as_weights(path: Path) -> None:
    irexec.read_model(DIGITS / "classifier.xml", path)


def _as_onnx(path: Path) -> None:
    import converters

    converters.convert(path)


def _as_arrays(path: Path) -> None:
    open_arrays(path)


def _as_labels(path: Path) -> None:
    read_labels(str(path))


@pytest.fixture(autouse=True)
def _half_a_minute_at_most() -> Iterator[None]:
    """A test that blocks fails: the alarm ends it."""

    def late(number: int, frame: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(30)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("read", [_as_model, _as_weights, _as_onnx, _as_arrays, _as_labels])
@pytest.mark.parametrize("make", KINDS)
def test_nothing_but_a_regular_file_is_read(
    make: Callable[[Path], str], read: Callable[[Path], None], tmp_path: Path
) -> None:
    kind = make(tmp_path / "x")
    with pytest.raises(irexec.IrexecError, match=f"(it|x) is {kind}, not a regular file"):
        read(tmp_path / "x")


@pytest.mark.parametrize("make", KINDS)
def test_images_are_regular_files(make: Callable[[Path], str], tmp_path: Path, capsys: Capture) -> None:
    kind = make(tmp_path / "x.png")
    assert run(["infer", str(DIGITS / "classifier.xml"), "-i", str(tmp_path / "x.png")]) == 3
    assert capsys.readouterr().err == f"error: {tmp_path / 'x.png'}: cannot be read: it is {kind}, not a regular file\n"


@pytest.mark.parametrize("make", KINDS)
def test_a_bin_that_is_not_a_regular_file_is_a_finding(make: Callable[[Path], str], tmp_path: Path) -> None:
    (tmp_path / "m.xml").write_bytes((DIGITS / "classifier.xml").read_bytes())
    kind = make(tmp_path / "m.bin")
    (finding,) = irexec.validate(irexec.read_model(tmp_path / "m.xml"))
    assert finding.code == "IR022"
    assert finding.message.startswith(f"m.bin is {kind}, not a regular file; the contents of")


def _model() -> irexec.Model:
    return irexec.read_model(DIGITS / "classifier.xml")


@pytest.mark.parametrize("suffix", [".xml", ".bin"])
@pytest.mark.parametrize("make", KINDS)
def test_a_model_is_not_written_over_what_is_not_a_regular_file(
    make: Callable[[Path], str], suffix: str, tmp_path: Path
) -> None:
    kind = make(tmp_path / f"m{suffix}")
    before = (tmp_path / f"m{suffix}").lstat()
    with pytest.raises(irexec.ModelError, match=f"cannot be written: it is {kind}, not a regular file"):
        irexec.save_model(_model(), tmp_path / "m.xml")
    after = (tmp_path / f"m{suffix}").lstat()
    assert (before.st_mode, before.st_ino) == (after.st_mode, after.st_ino)
    assert [path.name for path in tmp_path.iterdir()] == [f"m{suffix}"]


@pytest.mark.parametrize("name", ["-o", "--trace"])
@pytest.mark.parametrize("make", KINDS)
def test_results_are_not_written_over_what_is_not_a_regular_file(
    make: Callable[[Path], str], name: str, tmp_path: Path, capsys: Capture
) -> None:
    command, suffix = ("infer", ".npz") if name == "-o" else ("profile", ".json")
    path = tmp_path / f"o{suffix}"
    kind = make(path)
    assert run([command, str(DIGITS / "classifier.xml"), "-i", "random", name, str(path)]) == 2
    assert capsys.readouterr().err == f"error: {name} {path} is {kind}, not a regular file\n"
    assert [path.name for path in tmp_path.iterdir()] == [f"o{suffix}"]
    assert stat.S_ISCHR(os.stat("/dev/zero").st_mode)


def test_a_link_stays_and_its_file_is_replaced(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "elsewhere").mkdir()
    for name in ("o.npz", "m.xml", "m.bin"):
        (tmp_path / name).symlink_to(Path("elsewhere") / name)
    assert run(["infer", str(DIGITS / "classifier.xml"), "-i", "random", "-o", str(tmp_path / "o.npz")]) == 0
    irexec.save_model(_model(), tmp_path / "m.xml")
    assert all((tmp_path / name).is_symlink() for name in ("o.npz", "m.xml", "m.bin"))
    assert sorted(path.name for path in (tmp_path / "elsewhere").iterdir()) == ["m.bin", "m.xml", "o.npz"]
    assert list(np.load(tmp_path / "o.npz")) == ["probabilities"]
    assert irexec.validate(irexec.read_model(tmp_path / "m.xml"), weights=True) == []


@pytest.mark.parametrize(
    ("link", "message"), [("o.npz", "o.npz: its links form a cycle"), ("nowhere/o.npz", "is a link into the folder")]
)
def test_links_that_lead_nowhere(link: str, message: str, tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "o.npz").symlink_to(link)
    assert run(["infer", str(DIGITS / "classifier.xml"), "-i", "random", "-o", str(tmp_path / "o.npz")]) == 2
    err = capsys.readouterr().err
    assert message in err and err.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["o.npz"]


def test_a_pair_may_not_be_one_file(tmp_path: Path) -> None:
    for name in ("m.xml", "m.bin"):
        (tmp_path / name).symlink_to("one")
    with pytest.raises(irexec.ModelError, match=r"m\.bin leads to the same file"):
        irexec.save_model(_model(), tmp_path / "m.xml")


@pytest.mark.parametrize(
    "words",
    [
        ["infer", "", "-i", "random"], ["infer", ".", "-i", "random"], ["inspect", ""], ["profile", ""], ["profile", "."], ["bench", ""],
        ["convert", ""], ["convert", "."], ["infer", "M", "-i", ""], ["infer", "M", "-i", "random", "-o", ""],
        ["infer", "M", "-i", "random", "-o", "."], ["infer", "M", "-i", "random", "--dump-layers", ""],
        ["infer", "M", "-i", "random", "--bin", ""], ["infer", "M", "-i", "random", "--assert", ""],
        ["infer", "M", "-i", "random", "--topk", "1", "--labels", ""], ["profile", "M", "--trace", ""], ["validate", ""],
        ["convert", "O", "-o", ""], ["convert", "O", "-o", "."], ["profile", "M", "--runs", str(1 << 80)],
    ],
    ids=" ".join,
)  # fmt: skip
def test_paths_that_name_no_file_are_one_line(words: list[str], capsys: Capture) -> None:
    names = {"M": str(DIGITS / "classifier.xml"), "O": str(DIGITS / "classifier.onnx")}
    assert run([names.get(word, word) for word in words]) in (2, 3)
    err = capsys.readouterr().err
    assert err.startswith("error: ") and err.count("\n") == 1
