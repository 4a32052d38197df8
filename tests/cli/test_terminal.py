"""What a terminal shows: names and texts of files, tables of any width, and progress bars."""

from __future__ import annotations

import io
import json
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper, save

from irexec.cli import render
from irexec.cli.main import run
from irexec.display import Column, Table, Text
from irexec.display.text import GAP, cell_len, shortened
from irexec.tools.arrays.files import write_npz
from tests.support.paths import DIGITS, SAMPLES
from tests.test_messages import OBEYED

Capture = pytest.CaptureFixture[str]

# XML 1.0 allows these in names; of C0 it has tab and line break as references.
NAME = "\x9b31m\u202e\u2028\u200f"
CONTROLS = NAME + "\x1b[31m\x07"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model whose names hold what a terminal obeys, and files for it."""
    text = (SAMPLES / "digits" / "classifier.xml").read_text()
    for name in ("image", "relu1", "probabilities", "conv0"):
        text = text.replace(f'"{name}"', f'"{name}{NAME}&#10;"')
    (tmp_path / "m.xml").write_text(text, encoding="utf-8")
    (tmp_path / "bad.xml").write_text(
        text.replace('rounding_type="floor"', f'rounding_type="floor{NAME}"').replace('"ReLU"', f'"Re{NAME}LU"'),
        encoding="utf-8",
    )
    (tmp_path / "broken.xml").write_text(f"<net><layers></{NAME}>", encoding="utf-8")
    (tmp_path / "m.bin").write_bytes((SAMPLES / "digits" / "classifier.bin").read_bytes())
    (tmp_path / "bad.bin").write_bytes((SAMPLES / "digits" / "classifier.bin").read_bytes())
    (tmp_path / f"labels{CONTROLS}.txt").write_text(f"{CONTROLS}\n" * 10, encoding="utf-8")
    with open(tmp_path / "odd.npz", "wb") as file:
        write_npz(file, {f"x{CONTROLS}": np.zeros(1), f"relu1{NAME}\n": np.zeros(1)})
    node = helper.make_node(f"Op{CONTROLS}\n", ["x"], ["y"], name=f"n{CONTROLS}", domain=f"d{CONTROLS}")
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in "xy"]
    graph = helper.make_graph([node], f"g{CONTROLS}", values[:1], values[1:])
    save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid(f"d{CONTROLS}", 1)]),
        tmp_path / "m.onnx",
    )
    return tmp_path


INFER = ["infer", "m.xml", "-i", "zeros"]
COMMANDS = [
    [*INFER, "--all"],
    [*INFER, "--topk", "3", "--labels", f"labels{CONTROLS}.txt"],
    [*INFER, "--assert", "odd.npz"],
    [*INFER, "--tensor", f"t{CONTROLS}"],
    [*INFER, "--dump-layers", f"d{CONTROLS}"],
    [*INFER, "--topk", "3", "--labels", f"none{CONTROLS}"],
    ["infer", "m.xml", "-i", "odd.npz"],
    ["infer", "m.xml", "-i", f"x{CONTROLS}=zeros"],
    ["infer", "m.xml", "-i", f"none{CONTROLS}.npy"],
    ["infer", "m.xml", "-i", f"none{CONTROLS}.png"],
    ["infer", "m.xml", "-i", f"labels{CONTROLS}.txt"],
    ["infer", "m.xml", "-i", "random", "--shape", f"x{CONTROLS}[1]"],
    ["infer", "bad.xml", "-i", "zeros"],
    ["inspect", "m.xml", "--layers", "--ops", "--weights", "--plan", "-v"],
    ["inspect", "bad.xml", "--layers", "--ops"],
    ["profile", "m.xml", "--runs", "1"],
    ["profile", "m.xml", "--static"],
    ["validate", "m.xml", "bad.xml", "broken.xml"],
    ["validate", f"none{CONTROLS}.xml"],
    ["validate", "m.xml", "--ignore", CONTROLS],
    ["ops", "--check", "bad.xml"],
    ["ops", "--check", "m.onnx"],
    ["ops", CONTROLS],
    ["convert", "m.onnx"],
    ["convert", f"none{CONTROLS}.onnx"],
    ["explain", CONTROLS],
    [f"{CONTROLS}"],
    ["infer", f"--{CONTROLS}"],
]


@pytest.mark.parametrize("arguments", COMMANDS, ids=lambda arguments: ascii(" ".join(arguments)))
def test_nothing_that_a_terminal_obeys(
    arguments: list[str], folder: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    code = run(arguments)
    printed = capsys.readouterr()
    shown = printed.out + printed.err
    assert code in (0, 1, 2, 3, 4)
    assert not [character for character in OBEYED if character in shown.replace("\n", "")]
    assert printed.err.count("\n") == len(
        [
            line
            for line in printed.err.splitlines()
            if line.startswith(("error: ", "warning: ", "note: ", "next: ", "d\\x9b"))
        ]
    )
    if arguments != [CONTROLS] and code in (2, 3, 4):
        assert "\\u202e" in shown


def test_a_debugged_error_is_escaped_too(folder: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    assert run(["--debug", "infer", "m.xml", "-i", f"none{CONTROLS}.npy"]) == 3
    shown = capsys.readouterr().err
    assert "Traceback (most recent call last):" in shown
    assert not [character for character in OBEYED if character in shown.replace("\n", "")]


def test_json_is_exact(folder: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    assert run(["inspect", "m.xml", "--layers", "--json"]) == 0
    text = capsys.readouterr().out
    assert not [character for character in OBEYED if character in text.replace("\n", "")]
    names = [layer["name"] for layer in json.loads(text)["layers"]]
    assert f"relu1{NAME}\n" in names and f"image{NAME}\n" in names
    assert run([*INFER, "--assert", "odd.npz", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["only_in_reference"] == [f"x{CONTROLS}"]


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_json_is_exact_in_any_encoding(encoding: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    value = f"é模😀\udcff{''.join(OBEYED)}"
    with open(tmp_path / "out", "w", encoding=encoding) as file:
        monkeypatch.setattr(sys, "stdout", file)
        render.as_json({"name": value})
        monkeypatch.undo()
    assert json.loads((tmp_path / "out").read_text(encoding=encoding))["name"] == value


def _model(folder: Path, layers: str) -> str:
    (folder / "m.xml").write_text(f'<net name="n" version="11"><layers>{layers}</layers><edges/></net>')
    return str(folder / "m.xml")


@pytest.mark.slow
def test_a_long_name_takes_no_time_and_little_room(tmp_path: Path, capsys: Capture) -> None:
    name = "n" * 4_000_000
    path = _model(tmp_path, f'<layer id="0" name="{name}" type="ReLU"/><layer id="1" name="b" type="{name}"/>')
    for arguments in (
        ["validate", path],
        ["inspect", path, "--layers", "--ops"],
        ["ops", "--check", path],
        ["infer", path],
    ):
        start = time.process_time()
        assert run(arguments) in (1, 0, 3, 4)
        assert time.process_time() - start < 5
        printed = capsys.readouterr()
        assert len(printed.out + printed.err) < 100_000
    assert run(["validate", path, "--json"]) == 1
    assert name in {finding["layer_name"] for finding in json.loads(capsys.readouterr().out)["findings"]}


def test_100_000_rows_take_seconds(capsys: Capture) -> None:
    start = time.process_time()
    columns = ["name", Column("message", kind="sentence")]
    render.show(Table(columns, [(f"layer{i}", "a sentence") for i in range(100_000)], what="findings"))
    assert time.process_time() - start < 5
    lines = capsys.readouterr().out.splitlines()
    assert lines[-2:] == ["layer9999  a sentence", "... and 90,000 more findings; --json gives all of them"]
    assert len(lines) == 10_003


class _Terminal:
    """A terminal that keeps what is written to it."""

    encoding = "utf-8"

    def __init__(self) -> None:
        self.text = ""

    def write(self, text: str) -> None:
        self.text += text

    def flush(self) -> None: ...

    def isatty(self) -> bool:
        return True


def test_a_terminal_gets_500_rows_and_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = _Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("NO_COLOR", raising=False)
    render.show(Table(["severity"], [(Text("error", "error"),)] * 600))
    monkeypatch.undo()
    assert terminal.text.count("error") == 500
    assert "\x1b[1;31merror\x1b[0m" in terminal.text
    assert terminal.text.endswith("... and 100 more rows; --json gives all of them\n")


# Tables in a terminal of any width.


COLUMNS = [
    Column("id", kind="number"), Column("name"), Column("shape", kind="code"), Column("bytes", kind="number"),
    Column("mean", kind="number"), Column("remark", kind="sentence"),
]  # fmt: skip
ROWS = [
    (1, "a/very/long/name/of/a/layer/in/some/block/conv", "[1,3,224,224]", 150528, -1.17016e-05, "its mean is small and its name is long"),
    (20, "short", "[]", 4, 0.5, None),
]  # fmt: skip


def drawn(capsys: Capture, monkeypatch: pytest.MonkeyPatch, width: int | None) -> list[str]:
    monkeypatch.delenv("COLUMNS", raising=False)
    if width is not None:
        monkeypatch.setenv("COLUMNS", str(width))
    render.show(Table(COLUMNS, ROWS))
    return capsys.readouterr().out.splitlines()


@pytest.mark.parametrize("width", [40, 50, 60, 80, 100, 120])
def test_nothing_is_wider_than_the_terminal_and_no_number_is_cut(
    width: int, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = drawn(capsys, monkeypatch, width)
    assert max(map(cell_len, lines)) <= width
    words = " ".join(lines).split()
    for whole in (
        *(column.title for column in COLUMNS),
        "[1,3,224,224]",
        "150528",
        "-1.17016e-05",
        "0.5",
        "[]",
        "its",
        "mean",
        "small",
        "long",
    ):
        assert whole in words


def test_names_are_shortened_and_sentences_wrapped(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    assert drawn(capsys, monkeypatch, 90) == [
        "id  name               shape           bytes          mean  remark",
        "─" * 90,
        " 1  a/very/long/name…  [1,3,224,224]  150528  -1.17016e-05  its mean is small and its name",
        "                                                            is long",
        "20  short              []                  4           0.5",
    ]


def test_a_file_gets_every_name_whole(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = drawn(capsys, monkeypatch, None)
    assert len(lines) == 4
    assert str(ROWS[0][1]) in lines[2] and str(ROWS[0][5]) in lines[2]


def test_columns_that_do_not_fit_continue_on_a_line_of_their_own(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = drawn(capsys, monkeypatch, 50)
    assert lines[1].startswith(" " * 4) and "mean" in lines[1]


@pytest.mark.parametrize(
    ("text", "width", "expected"),
    [("abcdef", 6, "abcdef"), ("abcdefg", 6, "abcde…"), ("模型の名前", 6, "模型…"), ("ab cdef", 4, "ab…")],
)
def test_shortening_counts_cells(text: str, width: int, expected: str) -> None:
    assert shortened(text, width) == expected


def test_control_characters_are_shown_not_obeyed(capsys: Capture) -> None:
    render.show(Table(["name"], [("a\x1b[2Jb",)]))
    render.show("c\x07d")
    out = capsys.readouterr().out
    assert "a\\x1b[2Jb" in out and "c\\x07d" in out
    render.note_line("a\x1b[2Jb\nc")
    render.remark("d\x1b[2Je\nf")
    assert capsys.readouterr().err == "note: a\\x1b[2Jb c\nd\\x1b[2Je f\n"
    assert GAP == 2


def test_lines_are_wrapped_at_words_and_repeat_their_sign(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    render.show(
        ["one two three four five six seven", "  an indented line that is long", Text("+     a=1 b=2 c=3 d=4 e=5 f=6")]
    )
    render.show([Text("  a command is not wrapped, since it is copied", "code"), "12345678901234567890123456789012345"])
    assert capsys.readouterr().out.splitlines() == [
        "one two three four five six",
        "  seven",
        "  an indented line that is",
        "    long",
        "+     a=1 b=2 c=3 d=4 e=5 f=6",
        "  a command is not wrapped, since it is copied",
        "12345678901234567890123456789012345",
    ]
    monkeypatch.setenv("COLUMNS", "24")
    render.show(Text("+     a=1 b=2 c=3 d=4 e=5 f=6", "new"))
    assert capsys.readouterr().out.splitlines() == ["+     a=1 b=2 c=3 d=4", "+       e=5 f=6"]


# Progress bars: on stderr where that is a terminal, and nowhere else.


MODEL = str(DIGITS / "classifier.xml")
PROGRESS_COMMANDS = [
    (["inspect", MODEL, "--weights"], "reading weights"),
    (["inspect", MODEL], f"reading {MODEL}"[:20]),
    (["validate", MODEL], "validating"),
    (["validate", str(DIGITS)], "validating"),
]
# These show at once that they work, and a bar when they have run for a second.
RUNNING = [
    (["infer", MODEL, "-i", "random"], f"running {MODEL}"[:20]),
    (["infer", MODEL, "-i", "random", "--trap", "nan"], f"running {MODEL}"[:20]),
    (["profile", MODEL, "--runs", "3", "-i", "random"], f"running {MODEL}"[:20]),
]


class _ProgressTerminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("arguments", "text"), [*PROGRESS_COMMANDS, *RUNNING])
def test_a_terminal_shows_a_bar(
    arguments: list[str], text: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    terminal = _ProgressTerminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(render, "DELAY", 0)
    run(arguments)
    assert text in terminal.getvalue()
    # Of files the bar shows the number, of other work the percentage.
    assert ("7/7" if arguments == ["validate", str(DIGITS)] else "100%") in terminal.getvalue()
    assert text not in capsys.readouterr().out


@pytest.mark.parametrize(("arguments", "text"), [*PROGRESS_COMMANDS, *RUNNING])
def test_a_file_gets_none(arguments: list[str], text: str, capsys: pytest.CaptureFixture[str]) -> None:
    run(arguments)
    assert capsys.readouterr().err == ""


def test_what_is_done_within_a_second_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = _ProgressTerminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(render, "DELAY", 60)
    for arguments, _ in PROGRESS_COMMANDS:
        run(arguments)
    assert terminal.getvalue() == ""


def test_a_dumb_terminal_gets_none(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = _ProgressTerminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "dumb")
    run(PROGRESS_COMMANDS[0][0])
    assert terminal.getvalue().strip() == ""
