"""Errors of files name the file and the reason, and a file that cannot be written stays as it was."""

from __future__ import annotations

from pathlib import Path

import pytest

from irexec.errors import InputError, ModelError
from irexec.io.files import new_file
from irexec.io.reading import reading, writing


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    path = tmp_path / "missing.npy"
    with pytest.raises(ModelError) as caught, reading(path):
        path.read_bytes()
    assert str(caught.value) == f"{path}: cannot be read: No such file or directory"


def test_an_error_without_a_reason_of_the_system_is_quoted() -> None:
    with pytest.raises(ModelError) as caught, writing("out.npz"):
        raise OSError("the library refuses")
    assert str(caught.value) == "out.npz: cannot be written: the library refuses"


def test_other_errors_pass() -> None:
    with pytest.raises(InputError, match="no class"), writing("out.npz"):
        raise InputError("no class")


def test_a_new_file_replaces_the_old_one_or_leaves_it(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")
    with pytest.raises(ModelError, match=r"a\.txt: cannot be written: No space left on device"), new_file(path) as file:
        file.write(b"half")
        raise OSError(28, "No space left on device")
    assert path.read_text() == "old"
    assert [each.name for each in tmp_path.iterdir()] == ["a.txt"]
    with new_file(path) as file:
        file.write(b"new")
    assert path.read_text() == "new"


def test_a_folder_is_not_replaced(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="cannot be written"), new_file(tmp_path) as file:
        file.write(b"x")
    assert tmp_path.is_dir()
