"""The C sources and their Python side have the same structures and codes."""

from __future__ import annotations

import ctypes
import re

import pytest

from irexec.backend.native.chains import CODES
from irexec.native.sources import SOURCE
from irexec.native.structures import structure

_TEXT = "\n".join(
    re.sub(r"/\*.*?\*/", "", path.read_text("utf-8"), flags=re.DOTALL) for path in sorted(SOURCE.glob("*.[ch]"))
)


def test_a_structure_has_the_fields_of_c() -> None:
    made = structure("resize.c", "table")
    assert made._fields_ == [("index", ctypes.c_void_p), ("weights", ctypes.c_void_p), ("taps", ctypes.c_int64)]
    made = structure("resize.c", "resize")
    assert [field[0] for field in made._fields_][-2:] == ["down", "across"]
    assert made.across.offset + 24 == ctypes.sizeof(made) == 19 * 8
    with pytest.raises(AssertionError, match="resize has 15 fields, not 2"):
        made(1, 2)


def test_a_field_of_another_kind_is_refused() -> None:
    """Its offset would not be known."""
    with pytest.raises(KeyError, match="vf"):
        structure("levels.c", "numbers")


def test_the_codes_of_chains_are_those_of_c() -> None:
    """Names as in Python, in capitals with underscores; OF tells functions from those of other headers."""
    found = re.search(r"enum \{\s*(LOAD,[^}]*)\}", _TEXT)
    assert found is not None
    names = [re.sub("_OF$", "", name).replace("_", "") for name in re.split(r"[,\s]+", found[1].strip())]
    assert names == [code.upper() for code in CODES]


def test_each_code_but_load_is_computed() -> None:
    found = re.search(r"enum \{\s*(LOAD,[^}]*)\}", _TEXT)
    assert found is not None
    for name in re.split(r"[,\s]+", found[1].strip())[1:]:
        assert re.search(rf"case {name}:", _TEXT), name


def test_each_file_begins_with_its_explanation() -> None:
    for path in sorted(SOURCE.glob("*.[ch]")):
        assert path.read_text("utf-8").startswith("/* "), path.name


def test_the_sources_are_under_5170_lines() -> None:
    assert sum(len(path.read_text("utf-8").splitlines()) for path in SOURCE.glob("*.[ch]")) < 5170
