"""Other platforms by simulation: what their systems answer, or do not have, replaces what this system answers."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import irexec
from irexec.backend import system
from irexec.io import files, sources
from irexec.tools import commands
from irexec.tools.engines import engine
from tests.support.networks import unpacked
from tests.support.paths import DIGITS, ROOT
from tests.support.processes import python, said


class _Kernel:
    """kernel32, with functions that fill the structures they get."""

    def __init__(self, **fields: int) -> None:
        self.fields = fields
        self.GetCurrentProcess = SimpleNamespace(restype=None)
        self.GetCurrentProcess = lambda: 1  # type: ignore[assignment, return-value]

    def _fill(self, structure: Any) -> int:
        for name, value in self.fields.items():
            setattr(structure._obj, name, value)
        return 1

    def GlobalMemoryStatusEx(self, status: Any) -> int:
        assert status._obj.length == 64
        return self._fill(status)

    def K32GetProcessMemoryInfo(self, process: Any, counters: Any, size: Any) -> int:
        assert size.value == 72 == counters._obj.length
        return self._fill(counters)


class _Attributes:
    """A function that accepts attributes such as restype."""

    def __init__(self, call: Any) -> None:
        self._call = call

    def __call__(self, *arguments: Any) -> Any:
        return self._call(*arguments)


def _windows(monkeypatch: pytest.MonkeyPatch, kernel: Any) -> None:
    monkeypatch.setattr(ctypes, "WinDLL", lambda name, use_last_error: kernel, raising=False)
    monkeypatch.setattr(sys, "platform", "win32")


def test_windows_reports_the_memory_that_is_available(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    _windows(monkeypatch, _Kernel(available=3 << 30))
    assert system.available_memory(tmp_path) == 3 << 30
    kernel = _Kernel(page_file=123 << 20)
    kernel.GetCurrentProcess = _Attributes(lambda: 1)  # type: ignore[assignment]
    _windows(monkeypatch, kernel)
    assert system.memory_in_use(tmp_path) == 123 << 20


def test_windows_that_does_not_answer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    kernel = SimpleNamespace(
        GlobalMemoryStatusEx=lambda status: 0,
        K32GetProcessMemoryInfo=lambda *arguments: 0,
        GetCurrentProcess=_Attributes(lambda: 1),
    )
    _windows(monkeypatch, kernel)
    monkeypatch.delattr(os, "sysconf", raising=False)
    assert system.available_memory(tmp_path) == system.ASSUMED
    assert system.memory_in_use(tmp_path) == 0


VM_STAT = """Mach Virtual Memory Statistics: (page size of 16384 bytes)
Pages free:                               10000.
Pages active:                            300000.
Pages inactive:                           20000.
Pages speculative:                         3000.
Pages throttled:                              0.
Pages wired down:                         90000.
Pages purgeable:                            400.
"Translation faults":                 123456789.
"""


def test_macos_reports_the_pages_that_it_can_free(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(subprocess, "run", lambda *words, **options: SimpleNamespace(stdout=VM_STAT))
    assert system.available_memory(tmp_path) == 33_400 * 16384


@pytest.mark.parametrize("text", ["", "Pages free: 3.\n"])
def test_a_vm_stat_that_says_something_else_is_not_believed(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "run", lambda *words, **options: SimpleNamespace(stdout=text))
    assert system.mac_available() is None


def test_without_vm_stat_half_of_the_memory_is_assumed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def missing(*words: Any, **options: Any) -> Any:
        raise FileNotFoundError

    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(subprocess, "run", missing)
    monkeypatch.setattr(os, "sysconf", lambda name: {"SC_PHYS_PAGES": 1000, "SC_PAGE_SIZE": 4096}[name])
    assert system.available_memory(tmp_path) == 500 * 4096


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (r"python C:\t\check.py {}", ["python", r"C:\t\check.py", "{}"]),
        (r'"C:\Program Files\check.exe" "{}" {inputs}', [r"C:\Program Files\check.exe", "{}", "{inputs}"]),
        ("check '#1' # {}", ["check", "#1", "#", "{}"]),
    ],
)
def test_backslashes_of_a_command_stay_on_windows(text: str, words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "os", SimpleNamespace(name="nt"))
    assert commands.split_command(text) == words


def test_commands_are_read_as_a_posix_shell_does_elsewhere() -> None:
    import shlex

    for text in (r"a\ b {} c", '\'a b\' "c \\" d" {}', "x # {}", r"C:\t {}"):
        assert commands.split_command(text) == shlex.split(text)
    with pytest.raises(ValueError, match="quotation"):
        commands.split_command("a 'b")


@pytest.mark.parametrize(
    ("handle", "code", "error", "is_running"), [(7, 259, 0, True), (7, 1, 0, False), (0, 0, 87, False), (0, 0, 5, True)]
)
def test_processes_of_windows(
    handle: int, code: int, error: int, is_running: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def exit_code(process: Any, found: Any) -> int:
        found._obj.value = code
        return 1

    kernel = SimpleNamespace(
        OpenProcess=_Attributes(lambda *words: handle), GetExitCodeProcess=exit_code, CloseHandle=lambda process: 1
    )
    monkeypatch.setattr(ctypes, "WinDLL", lambda name, use_last_error: kernel, raising=False)
    monkeypatch.setattr(ctypes, "get_last_error", lambda: error, raising=False)
    assert files._is_running_on_windows(1234) is is_running


def test_where_files_are_locked_a_model_is_saved_over_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No file of the model is open or mapped once it is read, however large."""
    for suffix in (".xml", ".bin"):
        (tmp_path / f"m{suffix}").write_bytes((DIGITS / f"classifier{suffix}").read_bytes())
    monkeypatch.setattr(sources, "READ_AT_ONCE", 0)
    monkeypatch.setattr(sources, "is_locked_by_reading", lambda: True)
    model = irexec.read_model(tmp_path / "m.xml")
    constant = next(node.constant for node in model.nodes if node.constant is not None)
    before = np.array(constant.raw)
    if sys.platform == "linux":
        opened = {os.readlink(f"/proc/self/fd/{name}") for name in os.listdir("/proc/self/fd") if _exists(name)}
        assert str(tmp_path / "m.bin") not in opened
        assert str(tmp_path / "m.bin") not in Path("/proc/self/maps").read_text()
    irexec.save_model(model, tmp_path / "m.xml")
    assert np.array_equal(constant.raw, before)
    assert sources.is_locked_by_reading() is True


def _exists(name: str) -> bool:
    return os.path.lexists(f"/proc/self/fd/{name}")


@pytest.mark.parametrize("text", ["Name:\tpython\nVmRSS:\t 1 kB\n", ""])
def test_a_status_without_a_peak(text: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "status").write_text(text)
    monkeypatch.setattr(engine, "Path", lambda path: tmp_path / "status")
    assert engine.peak_bytes() > 0
    monkeypatch.setitem(sys.modules, "resource", None)
    assert engine.peak_bytes() == 0


def test_without_sqlite_batch_says_what_is_missing() -> None:
    code = (
        "import sys; sys.modules['sqlite3'] = None\n"
        "from irexec.cli.main import run; sys.exit(run(['batch', 'm.xml', 'x.npy', '-o', 'o.npz']))"
    )
    done = python("-c", code, folder=ROOT)
    assert (done.returncode, done.stderr) == (4, "error: batch needs sqlite3, which this Python does not have\n")


_RUN = """
import contextlib, io, json, sys
from irexec.cli.main import main
answers = []
for words in json.loads(sys.argv[1]):
    sys.argv = ["irexec", *words]
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        try:
            main()
        except SystemExit as end:
            answers.append((end.code, said.getvalue()))
print(json.dumps(answers))
"""
_MODEL = "samples/digits/classifier.xml"


def _assert_answers(preamble: str, rows: list[tuple[str, int, str]]) -> None:
    """Run commands, all in one process that begins with ``preamble``: each ends with a code, and its output has a
    text.
    """
    words = json.dumps([command.split() for command, _, _ in rows])
    outcomes = json.loads(said(ROOT, "-c", preamble + _RUN, words)[0])
    for (command, code, text), (actual, output) in zip(rows, outcomes, strict=True):
        assert actual == code and text in output, f"{command} ended with {actual}:\n{output}"


@pytest.mark.slow
def test_commands_where_there_are_no_threads_processes_signals_or_mappings(tmp_path: Path) -> None:
    rows = [
        (f"validate {_MODEL}", 0, "no findings"),
        (f"validate {_MODEL} samples/digits/denoiser.xml --jobs 2", 0, "2 files: no findings"),
        (f"validate {_MODEL} samples/digits/damaged.xml", 1, "damaged.xml"),
        (f"infer {_MODEL} -i random -o {tmp_path}/o.npz --timeout 60", 0, "probabilities"),
        (f"infer {_MODEL} -i random -o {tmp_path}/o.npz --threads 4", 0, "probabilities"),
        (f"report {_MODEL} -o {tmp_path}/r.html", 0, "no findings"),
        (f"edit {_MODEL} --rt-info a=b -o {tmp_path}/m.xml", 0, "m.xml"),
        (f"edit {_MODEL} --rt-info a=c -o {tmp_path}/m.xml --overwrite", 0, "m.xml"),
        (f"compare {_MODEL} {tmp_path}/m.xml", 0, "agree"),
        (f"inspect {_MODEL} --plan", 0, "Softmax"),
        (f"profile {_MODEL}", 0, "NumPy alone"),
        (f"diff {_MODEL} samples/digits/denoiser.xml", 1, "layers added"),
        (f"graph {_MODEL} -o {tmp_path}/g.svg", 0, "g.svg"),
        (f"bench {_MODEL}", 3, "error: the process of irexec cannot be started: emscripten does not support processes."),
        (f"reduce {_MODEL} -o {tmp_path}/s.xml --check true", 2, "error: "),
        (f"batch {_MODEL} x.npy -o {tmp_path}/b.npz", 4, "error: batch needs sqlite3"),
    ]  # fmt: skip
    _assert_answers("import tests.support.without_system\n", rows)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["g.svg", "m.bin", "m.xml", "o.npz", "r.html"]


def test_a_large_file_that_the_system_cannot_map_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for suffix in (".xml", ".bin"):
        (tmp_path / f"m{suffix}").write_bytes((DIGITS / f"classifier{suffix}").read_bytes())
    monkeypatch.setattr(sources, "READ_AT_ONCE", 0)
    monkeypatch.setitem(sys.modules, "mmap", None)
    constants = [node.constant for node in irexec.read_model(tmp_path / "m.xml").nodes if node.constant is not None]
    assert sum(constant.raw.size for constant in constants) == (tmp_path / "m.bin").stat().st_size


@pytest.mark.slow
def test_commands_where_indices_have_32_bits(tmp_path: Path) -> None:
    """Of a network with Gather, TopK, NonMaxSuppression and ROIAlign."""
    model = unpacked("faster_rcnn", tmp_path)
    rows = [
        (f"validate {model}", 1, "1 warning"),
        (f"infer {model} -i random -o {tmp_path}/o.npz", 0, "int64"),
        (f"report {model} --profile -o {tmp_path}/r.html", 0, "r.html"),
        (f"compare {model} {model}", 0, "agree"),
        (f"reduce {model} -o {tmp_path}/s.xml --against reference", 1, "does not fail"),
    ]
    preamble = "from tests.support import intp_of_32_bits, without_system\nintp_of_32_bits.simulate()\n"
    _assert_answers(preamble, rows)


def test_macos_exchanges_folders_in_one_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[Any, ...]] = []

    def exchange(one: bytes, other: bytes, flags: Any) -> int:
        calls.append((one, other, flags.value))
        os.rename(one, one + b".x")
        os.rename(other, one)
        os.rename(one + b".x", other)
        return 0

    monkeypatch.setattr(ctypes, "CDLL", lambda name: SimpleNamespace(renamex_np=exchange))
    target = tmp_path / "dump"
    target.mkdir()
    (target / "old").write_text("")
    with files.replacing_folder(target) as new:
        (new / "new").write_text("")
    assert [path.name for path in target.iterdir()] == ["new"]
    assert [flags for _, _, flags in calls] == [2]
    assert [path.name for path in tmp_path.iterdir()] == ["dump"]


def test_without_an_exchange_folders_are_renamed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda name: SimpleNamespace())
    target = tmp_path / "dump"
    target.mkdir()
    with files.replacing_folder(target) as new:
        (new / "new").write_text("")
    assert [path.name for path in target.iterdir()] == ["new"]
