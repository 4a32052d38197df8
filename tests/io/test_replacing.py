"""Files that belong together are replaced together, whatever happens between the renames."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from irexec.io import files
from irexec.io.files import Temporary, replacing, replacing_folder, signals_held
from tests.support.processes import python

SIGNALS = [signal.Signals[name] for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


class _Raised(BaseException):
    pass


@pytest.fixture
def _raising() -> Iterator[None]:
    """Each signal raises, as Ctrl-C does."""

    def raise_it(number: int, frame: object) -> None:
        raise _Raised

    before = {number: signal.signal(number, raise_it) for number in SIGNALS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def targets(tmp_path: Path) -> tuple[Path, Path]:
    """Two old files."""
    made = (tmp_path / "m.bin", tmp_path / "m.xml")
    for path in made:
        path.write_text("old")
    return made


def _write(targets: tuple[Path, ...], text: str = "new") -> None:
    with replacing(*targets) as opened:
        for file in opened:
            file.write(text.encode())


def _texts(targets: tuple[Path, ...]) -> list[str]:
    return [path.read_text() if path.exists() else "none" for path in targets]


def _only(targets: tuple[Path, ...]) -> bool:
    """Whether the folder has nothing but the targets."""
    return {path.name for path in targets[0].parent.iterdir()} <= {path.name for path in targets}


def _after_rename(
    monkeypatch: pytest.MonkeyPatch, at: int, action: Callable[[], None], *, before: bool = False
) -> None:
    """Do something right after, or before, a rename."""
    real, calls = os.replace, [0]

    def rename(*arguments: Any) -> None:
        calls[0] += 1
        if calls[0] == at and before:
            action()
        real(*arguments)
        if calls[0] == at and not before:
            action()

    monkeypatch.setattr(files.os, "replace", rename)


@pytest.mark.parametrize("flushes", [True, False])
def test_new_files_are_flushed_to_the_disk_before_the_first_rename(
    flushes: bool, targets: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rename that reaches the disk before what it renames would leave an empty file after a power cut."""
    calls: list[object] = []
    real_replace, real_fsync = os.replace, os.fsync

    def fsync(file: int) -> None:
        calls.append(os.fstat(file).st_size)
        real_fsync(file)

    def replace(*paths: Any) -> None:
        calls.append("rename")
        real_replace(*paths)

    monkeypatch.setattr(files.os, "fsync", fsync)
    monkeypatch.setattr(files.os, "replace", replace)
    with replacing(*targets, flushes=flushes) as opened:
        for file in opened:
            file.write(b"new text")
    assert calls == ([8, 8] if flushes else []) + ["rename", "rename"]


@pytest.mark.usefixtures("_raising")
@pytest.mark.parametrize("at", [1, 2])
@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_between_the_renames_waits_for_the_last(
    number: signal.Signals, at: int, targets: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    _after_rename(monkeypatch, at, lambda: signal.raise_signal(number))
    with pytest.raises(_Raised):
        _write(targets)
    assert _texts(targets) == ["new", "new"]
    assert _only(targets)


@pytest.mark.parametrize(("at", "expected"), [(1, "old"), (2, "new")])
@pytest.mark.parametrize("existing", [0, 1, 2])
def test_an_exception_right_after_a_rename(
    existing: int, at: int, expected: str, targets: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is undone follows from what is on the disk: after the last rename nothing needs to be."""
    for path in targets[existing:]:
        path.unlink()

    def fail() -> None:
        raise _Raised

    _after_rename(monkeypatch, at, fail)
    with pytest.raises(_Raised):
        _write(targets)
    assert _texts(targets) == (["new", "new"] if expected == "new" else ["old"] * existing + ["none"] * (2 - existing))
    assert _only(targets)


@pytest.mark.parametrize("at", [1, 2])
def test_a_rename_that_fails_leaves_the_old_files(
    at: int, targets: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise PermissionError(1, "Operation not permitted")

    _after_rename(monkeypatch, at, fail, before=True)
    with pytest.raises(PermissionError):
        _write(targets)
    assert _texts(targets) == ["old", "old"]
    assert _only(targets)


@pytest.mark.skipif(sys.platform == "win32", reason="os.kill ends a process of Windows at once, whatever the signal")
@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_that_ends_the_process_waits_for_the_last_rename(
    number: signal.Signals, targets: tuple[Path, Path]
) -> None:
    """A program that has no handlers of its own."""
    program = f"""
import os, signal, sys
# A shell makes its background jobs ignore SIGINT, and nohup makes its command ignore SIGHUP.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
from pathlib import Path
from irexec.io import files
real = os.replace

def rename(*arguments):
    real(*arguments)
    os.kill(os.getpid(), {int(number)})

files.os.replace = rename
with files.replacing(*map(Path, sys.argv[1:])) as opened:
    for file in opened:
        file.write(b"new")
print("never")
"""
    done = python("-c", program, *map(str, targets))
    assert done.stdout == ""
    assert done.returncode == -number
    assert _texts(targets) == ["new", "new"]
    assert _only(targets)


@pytest.mark.usefixtures("_raising")
def test_handlers_are_as_before() -> None:
    before = [signal.getsignal(number) for number in SIGNALS]
    with signals_held():
        assert all(signal.getsignal(number) is not handler for number, handler in zip(SIGNALS, before, strict=True))
        with signals_held():
            pass
    assert [signal.getsignal(number) for number in SIGNALS] == before


def test_a_signal_that_is_ignored_stays_ignored() -> None:
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        with signals_held():
            signal.raise_signal(signal.SIGTERM)
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGTERM, before)


def test_another_thread_can_write(targets: tuple[Path, Path]) -> None:
    thread = threading.Thread(target=_write, args=(targets,))
    thread.start()
    thread.join()
    assert _texts(targets) == ["new", "new"]


def _ended_process() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


@pytest.mark.parametrize("running", [False, True])
def test_what_a_killed_process_left_is_deleted_by_the_next(running: bool, targets: tuple[Path, Path]) -> None:
    number = os.getppid() if running else _ended_process()
    left = Temporary(targets[1])
    folder = left.folder.with_name(left.folder.name.replace(f"-{os.getpid()}-", f"-{number}-"))
    folder.mkdir()
    (folder / "new").write_text("half of it")
    keep = [
        targets[0].with_name(name)
        for name in (".m.xml.irexec", f".m.xml.irexec-{number}", f"{folder.name}x", folder.name[1:])
    ]
    for path in keep:
        path.mkdir()
    _write(targets)
    assert folder.exists() is running
    assert all(path.exists() for path in keep)


def test_a_link_with_such_a_name_is_not_followed(targets: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "file").write_text("kept")
    left = Temporary(targets[1])
    left.folder.with_name(left.folder.name.replace(f"-{os.getpid()}-", f"-{_ended_process()}-")).symlink_to("precious")
    _write(targets)
    assert (tmp_path / "precious" / "file").read_text() == "kept"


def test_the_longest_names_can_be_written(tmp_path: Path) -> None:
    path = tmp_path / ("é" * 126 + "x.z")
    _write((path,))
    assert path.read_text() == "new"


def test_permissions_stay(targets: tuple[Path, Path]) -> None:
    targets[0].chmod(0o640)
    _write(targets)
    assert targets[0].stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("exchange", [True, False])
def test_a_folder_is_replaced_as_a_whole(exchange: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not exchange:
        monkeypatch.setattr("irexec.io.files._exchange", lambda one, other: False)
    target = tmp_path / "dump"
    for text in ("one", "two"):
        with replacing_folder(target) as new:
            (new / text).write_text(text)
        assert [path.name for path in target.iterdir()] == [text]
    with pytest.raises(_Raised), replacing_folder(target) as new:
        (new / "three").write_text("three")
        raise _Raised
    assert [path.name for path in target.iterdir()] == ["two"]
    assert [path.name for path in tmp_path.iterdir()] == ["dump"]


def test_a_folder_whose_writer_was_killed_between_two_renames_is_put_back(tmp_path: Path) -> None:
    target = tmp_path / "dump"
    left = Temporary(target)
    folder = left.folder.with_name(left.folder.name.replace(f"-{os.getpid()}-", f"-{_ended_process()}-"))
    for name in ("old", "new"):
        (folder / name).mkdir(parents=True)
        (folder / name / "text").write_text(name)
    with pytest.raises(ValueError, match="in the block"), replacing_folder(target):
        raise ValueError("in the block")
    assert (target / "text").read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_what_is_put_back_is_not_that_of_another_name_with_the_same_start(tmp_path: Path) -> None:
    left = Temporary(tmp_path / ("a" * 60 + "1"))
    folder = left.folder.with_name(left.folder.name.replace(f"-{os.getpid()}-", f"-{_ended_process()}-"))
    (folder / "old").mkdir(parents=True)
    target = tmp_path / ("a" * 60 + "2")
    with replacing_folder(target) as new:
        (new / "text").write_text("new")
    assert (folder / "old").is_dir()
    assert [path.name for path in target.iterdir()] == ["text"]


def test_a_folder_whose_second_rename_fails_is_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "dump"
    target.mkdir()
    (target / "old").write_text("old")
    monkeypatch.setattr("irexec.io.files._exchange", lambda one, other: False)
    real, calls = os.rename, [0]

    def rename(*arguments: Any) -> None:
        calls[0] += 1
        if calls[0] == 2:
            raise PermissionError(1, "Operation not permitted")
        real(*arguments)

    monkeypatch.setattr("irexec.io.files.os.rename", rename)
    with pytest.raises(PermissionError), replacing_folder(target) as new:
        (new / "new").write_text("new")
    assert [path.name for path in target.iterdir()] == ["old"]
    assert [path.name for path in tmp_path.iterdir()] == ["dump"]


@pytest.mark.skipif(not hasattr(signal, "SIGUSR1"), reason="needs SIGUSR1")
def test_a_handler_that_a_library_installed_stays() -> None:
    """Python knows nothing of it."""
    program = (
        "import faulthandler, os, signal, sys\n"
        "from irexec.io.files import signals_held\n"
        "faulthandler.register(signal.SIGUSR1)\n"
        "with signals_held(): pass\n"
        "os.kill(os.getpid(), signal.SIGUSR1)\n"
        "print('alive')\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "alive\n")
    assert "most recent call first" in done.stderr
