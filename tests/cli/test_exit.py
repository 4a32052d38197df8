"""How the command line ends: one line on stderr and the exit code that says what kind of error it was."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from irexec.cli.main import run
from irexec.io import sources
from irexec.io.sources import OpenFile
from tests.support.paths import DIGITS
from tests.support.processes import python

MODEL = DIGITS / "classifier.xml"
Capture = pytest.CaptureFixture[str]


@pytest.mark.parametrize(
    "arguments",
    [
        ["infer", MODEL, "-i", "random", "--json"],
        ["infer", MODEL, "-i", "random"],
        ["inspect", MODEL, "--layers"],
        ["validate", MODEL, "--json"],
        ["ops"],
        ["ops", "--help"],
        ["--version"],
    ],
)
@pytest.mark.sampled(6)
def test_a_full_disk_behind_stdout_is_one_line(arguments: list[object]) -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.fail("this system has no /dev/full: run the test on Linux")
    with full.open("w") as disk:
        done = subprocess.run(
            [sys.executable, "-m", "irexec", *map(str, arguments)],
            stdout=disk,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 3
    assert done.stderr.endswith("No space left on device\n")
    assert done.stderr.count("\n") == 1


def test_a_full_disk_behind_stderr_leaves_the_exit_code_true() -> None:
    with open("/dev/full", "w") as disk:
        done = subprocess.run(
            [sys.executable, "-m", "irexec", "infer", "nowhere.xml"], stderr=disk, stdout=subprocess.PIPE, check=False
        )
    assert (done.returncode, done.stdout) == (3, b"")


_INTERRUPTED = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # A shell lets what runs in the background ignore it.

class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            signal.raise_signal(signal.SIGINT)

sys.meta_path.insert(0, Interrupt())
sys.argv = ["irexec", "ops"]
from irexec.cli.main import main
main()
"""


@pytest.mark.parametrize(
    "module", ["numpy", "irexec.tools.operations", "irexec.cli.main", "click", "irexec.ops.gather"]
)
@pytest.mark.sampled(4)
def test_an_interrupt_while_modules_are_imported_is_one_line(module: str) -> None:
    done = python("-c", _INTERRUPTED.format(module=module))
    assert done.returncode == 130
    assert done.stderr.strip() == "error: interrupted"


_OF_A_COMMAND = """
import os, signal, sys, time
from irexec.cli import streams
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, signal.SIG_DFL)
streams.exit_on_signals()
streams.raise_on_signals()
streams.leave_to_command()
seen = []
signal.signal(signal.SIGTERM, lambda number, frame: seen.append(number))
os.kill(os.getpid(), signal.SIGTERM)
time.sleep(1.5)
sys.exit(0 if seen else "no signal")
"""


@pytest.mark.slow
def test_a_command_that_handles_signals_itself_may_take_its_time() -> None:
    done = python("-c", _OF_A_COMMAND)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_library_leaves_interrupts_alone() -> None:
    program = "import signal; before = signal.getsignal(signal.SIGINT); import irexec; print(signal.getsignal(signal.SIGINT) is before)"
    assert (
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "True\n"
    )


def test_no_arguments_at_all_give_the_help(capsys: Capture) -> None:
    assert run([]) == 0
    assert "Look:" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["frobnicate"], "no such command 'frobnicate' (see irexec --help)"),
        (["infre"], "no such command 'infre', did you mean infer? (see irexec --help)"),
        (["profil", MODEL], "no such command 'profil', did you mean profile? (see irexec --help)"),
        (["Validate"], "no such command 'Validate', did you mean validate? (see irexec --help)"),
        (["compress", MODEL], "no such command 'compress', did you mean edit --compress? (see irexec --help)"),
        (["run", MODEL], "no such command 'run', did you mean infer? (see irexec --help)"),
        (["infer"], "missing argument 'MODEL' (see irexec infer --help)"),
        (["infer", MODEL, "--zzz"], "no such option"),
        (["infer", MODEL, "--topk", "0"], "invalid value for '--topk': 0 is not in the range x>=1 (see irexec infer --help)"),
        (["infer", MODEL, "-i", "random", "--seed", "-1"], "invalid value for '--seed': -1 is not in the range x>=0 (see irexec infer --help)"),
        (["ops", "Gathr"], "there is no operation 'Gathr'; similar types are Gather"),
        (["infer", MODEL], "no value is given for 'image': the model has image: f32[1,1,8,8]; -i random generates values"),
        (["infer", MODEL, "--seed", "two"], "invalid value for '--seed': 'two' is not an integer (see irexec infer --help)"),
        (["infer", MODEL, "--rtol", "two"], "invalid value for '--rtol': 'two' is not a number (see irexec infer --help)"),
        (["infer", MODEL, "--trap-margin", "two"], "invalid value for '--trap-margin': 'two' is not a number"),
        (["infer", MODEL, "-o"], "option '-o' requires an argument"),
        (["inspect", "-"], "invalid value for 'MODEL': '-' stands for neither standard input nor output here, expected a path"),
        (["convert", "-"], "invalid value for 'MODEL': '-' stands for neither"),
        (["convert", ""], "invalid value for 'MODEL': '' is not a path"),
        (["infer", MODEL, "-i", "random", "--tensor", "2:2"], "there is no tensor '2:2': layer 'conv0/Convolution' has 1 output\n"),
    ],
)  # fmt: skip
def test_all_usage_errors_are_one_line_in_one_style(arguments: list[object], message: str, capsys: Capture) -> None:
    assert run([str(argument) for argument in arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"error: {message}")
    assert err.count("\n") == 1


def test_a_shape_that_a_model_does_not_take_is_wrong_usage_everywhere(tmp_path: Path, capsys: Capture) -> None:
    for arguments in (
        ["infer", MODEL, "-i", "random", "--shape", "image[1,4,8,8]"],
        ["convert", MODEL.with_suffix(".onnx"), "-o", tmp_path / "m.xml", "--input", "image[1,4,8,8]"],
    ):
        assert run([str(argument) for argument in arguments]) == 2
        err = capsys.readouterr().err
        assert err.startswith("error: the model does not take --") and "data has 4 channels, the filter takes 1" in err
        assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_without_onnx_the_message_says_what_to_install(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "converters.onnx.translate", None)
    assert run(["convert", str(MODEL.with_suffix(".onnx"))]) == 4
    assert "pip install onnx" in capsys.readouterr().err


def test_an_interrupt_that_is_ignored_stays_ignored() -> None:
    """As a shell does for what runs in the background."""
    program = """
import signal, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)
sys.argv = ["irexec", "ops", "Relu"]
from irexec.cli.main import main
signal.raise_signal(signal.SIGINT)
main()
"""
    done = python("-c", program)
    assert (done.returncode, done.stderr) == (0, "")


_ends_by_signals = pytest.mark.skipif(sys.platform == "win32", reason="Windows sends no signals to another process")

_BUSY = """
import hashlib, signal, sys
# A shell makes its background jobs ignore SIGINT, and nohup makes its command ignore SIGHUP.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
import irexec.cli.infer
from irexec.cli.main import main
from irexec.io.files import replacing
from pathlib import Path

class Busy:
    def __del__(self):
        while True:
            pass

def compute(*arguments):
    with replacing(Path(sys.argv[-1])):
        print("started", flush=True)
        {busy}

irexec.cli.infer.run_once = compute
sys.argv = ["irexec", "infer", {model!r}, "-o", {output!r}]
main()
"""
_BUSY_WITH = {
    "Python": "while True: pass",
    "a function in C": "hashlib.pbkdf2_hmac('sha256', b'', b'', 1 << 30)",
    "a destructor": "Busy(); print('never')",
}


@_ends_by_signals
@pytest.mark.parametrize("busy", _BUSY_WITH.values(), ids=_BUSY_WITH)
@pytest.mark.parametrize(
    ("name", "code", "message"), [("SIGINT", 130, "error: interrupted\n"), ("SIGTERM", 143, ""), ("SIGHUP", 129, "")]
)
@pytest.mark.sampled(12)
def test_a_signal_is_answered_within_seconds_whatever_runs(
    name: str, code: int, message: str, busy: str, tmp_path: Path
) -> None:
    """A signal is answered within about a second; the limit allows for a busy machine. The work itself takes minutes."""
    program = _BUSY.format(busy=busy, model=str(MODEL), output=str(tmp_path / "o.npz"))
    words = [sys.executable, "-c", program]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "started\n"
            process.send_signal(getattr(signal, name))
            out, err = process.communicate(timeout=20)
        finally:
            process.kill()
    assert (process.returncode, out, err) == (code, "", message)
    assert list(tmp_path.iterdir()) == []


def test_a_second_interrupt_does_not_disturb_the_first() -> None:
    program = f"""
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # A shell lets what runs in the background ignore it.
import irexec.cli.infer
from irexec.cli import render
from irexec.cli.main import main

shown = render.error_line

def again(*arguments):
    signal.raise_signal(signal.SIGINT)
    shown(*arguments)

def interrupted(*arguments):
    signal.raise_signal(signal.SIGINT)

render.error_line = again
irexec.cli.infer.run_once = interrupted
sys.argv = ["irexec", "infer", {str(MODEL)!r}]
main()
"""
    done = python("-c", program)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "error: interrupted\n")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no /dev/zero")
def test_standard_input_without_end_that_is_not_an_array() -> None:
    with open("/dev/zero", "rb") as zeros:
        words = [sys.executable, "-m", "irexec", "infer", str(MODEL), "-i", "-"]
        done = subprocess.run(words, stdin=zeros, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 3
    assert "standard input: not a readable .npy" in done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ["infer", "-i", "random"],
        ["validate", "--weights"],
        ["inspect", "--weights", "--plan"],
        ["profile", "--runs", "1"],
    ],
)
def test_no_mmap_maps_nothing(words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    mapped: list[object] = []
    real = OpenFile.map

    def noted(self: OpenFile) -> object:
        mapped.append(self)
        return real(self)

    monkeypatch.setattr(OpenFile, "map", noted)
    # The file is small.
    monkeypatch.setattr(sources, "READ_AT_ONCE", 0)
    assert run([words[0], str(MODEL), *words[1:], "--no-mmap"]) == 0
    assert mapped == []
    assert run([words[0], str(MODEL), *words[1:]]) == 0
    assert mapped
    capsys.readouterr()


_AT_EVERY_LINE = """
import atexit, signal, sys
{reset}
import irexec.cli.ops
from irexec.cli import streams
from irexec.cli.main import main

left = int(sys.argv[1])
atexit.register(lambda: print("no signal was sent" if left > 0 else ""))

def lines(frame, event, argument):
    global left
    if event == "line" and frame.f_code.co_filename == streams.__file__:
        left -= 1
        if left == 0:
            signal.raise_signal({number})
    return lines

sys.argv = ["irexec", "ops", "Relu"]
sys.settrace(lines)
main()
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["SIGINT", "SIGTERM"])
@pytest.mark.parametrize("line", range(7, 46, 3))
@pytest.mark.sampled(10)
def test_a_signal_while_handlers_are_installed_or_removed(line: int, number: signal.Signals) -> None:
    """It ends the process, or is ignored when the work is done already; there is never a traceback. Before line 7 there are no handlers."""
    program = _AT_EVERY_LINE.format(
        reset="signal.signal(signal.SIGINT, signal.default_int_handler)", number=int(number)
    )
    done = python("-c", program, str(line))
    assert "no signal was sent" not in done.stdout
    assert done.returncode in (0, 128 + number)
    assert done.stderr in (("", "error: interrupted\n") if number == signal.SIGINT else ("",))


@pytest.mark.parametrize(
    ("error", "message"), [(MemoryError(), ""), (MemoryError("1 TiB"), ": 1 TiB")], ids=["nothing", "a size"]
)
def test_too_little_memory_is_one_line(
    error: MemoryError, message: str, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    def fail(*arguments: object) -> None:
        raise error

    monkeypatch.setattr("irexec.cli.infer.run_once", fail)
    assert run(["infer", str(MODEL)]) == 3
    assert capsys.readouterr().err == f"error: there is not enough memory{message}\n"
