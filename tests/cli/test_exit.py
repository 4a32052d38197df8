"""How the command line ends: one line on stderr and the exit code that says what kind of error it was."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from irexec.cli.main import run

DIGITS = Path(__file__).parent.parent.parent / "samples" / "digits"
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
def test_a_full_disk_behind_stdout_is_one_line(arguments: list[object]) -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.fail("this system has no /dev/full: run the test on Linux")
    with full.open("w") as disk:
        done = subprocess.run(
            [sys.executable, "-m", "irexec", *map(str, arguments)], stdout=disk, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 3
    assert done.stderr.endswith("No space left on device\n")
    assert done.stderr.count("\n") == 1


def test_a_full_disk_behind_stderr_leaves_the_exit_code_true() -> None:
    with open("/dev/full", "w") as disk:
        done = subprocess.run([sys.executable, "-m", "irexec", "infer", "nowhere.xml"], stderr=disk, stdout=subprocess.PIPE, check=False)
    assert (done.returncode, done.stdout) == (3, b"")


_INTERRUPTED = """
import signal, sys

class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            signal.raise_signal(signal.SIGINT)

sys.meta_path.insert(0, Interrupt())
sys.argv = ["irexec", "ops"]
from irexec.cli.main import main
main()
"""


@pytest.mark.parametrize("module", ["numpy", "irexec.runtime.session", "irexec.cli.main", "click", "irexec.ops.gather"])
def test_an_interrupt_while_modules_are_imported_is_one_line(module: str) -> None:
    done = subprocess.run([sys.executable, "-c", _INTERRUPTED.format(module=module)], capture_output=True, text=True, check=False)
    assert done.returncode == 130
    assert done.stderr.strip() == "error: interrupted"


def test_a_library_leaves_interrupts_alone() -> None:
    program = "import signal, irexec; print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "True\n"


def test_no_arguments_at_all_give_the_help(capsys: Capture) -> None:
    assert run([]) == 0
    assert "Commands:" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["frobnicate"], "no such command 'frobnicate' (see irexec --help)"),
        (["infer"], "missing argument 'MODEL' (see irexec infer --help)"),
        (["infer", MODEL, "--zzz"], "no such option"),
        (["infer", MODEL, "--topk", "0"], "invalid value for '--topk': 0 is not in the range x>=1 (see irexec infer --help)"),
        (
            ["infer", MODEL, "-i", "random", "--seed", "-1"],
            "invalid value for '--seed': -1 is not in the range x>=0 (see irexec infer --help)",
        ),
        (["ops", "Gathr"], "there is no operation 'Gathr'; similar types are Gather"),
        (["infer", MODEL], "no value is given for 'image'"),
    ],
)
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
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
