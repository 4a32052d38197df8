"""Tables in a terminal of any width."""

from __future__ import annotations

import pytest

from irexec.cli import render
from irexec.display import Column, Table, Text
from irexec.display.text import GAP, cell_len, shortened

Capture = pytest.CaptureFixture[str]

COLUMNS = [
    Column("id", kind="number"),
    Column("name"),
    Column("shape", kind="code"),
    Column("bytes", kind="number"),
    Column("mean", kind="number"),
    Column("remark", kind="sentence"),
]
ROWS = [
    (
        1,
        "a/very/long/name/of/a/layer/in/some/block/conv",
        "[1,3,224,224]",
        150528,
        -1.17016e-05,
        "its mean is small and its name is long",
    ),
    (20, "short", "[]", 4, 0.5, None),
]


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
