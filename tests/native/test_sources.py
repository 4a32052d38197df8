"""The C sources and their Python side have the same structures and codes."""

from __future__ import annotations

import ctypes
import importlib
import pkgutil
import re
from collections.abc import Iterator

import pytest

import irexec.backend.native
from irexec.backend.native.chains import CODES
from irexec.native.sources import SOURCE

_TEXT = "\n".join(
    re.sub(r"/\*.*?\*/", "", path.read_text("utf-8"), flags=re.DOTALL) for path in sorted(SOURCE.glob("*.[ch]"))
)


def _structures() -> Iterator[type[ctypes.Structure]]:
    package = irexec.backend.native
    modules = [
        importlib.import_module(f"{package.__name__}.{info.name}") for info in pkgutil.iter_modules(package.__path__)
    ]
    for module in modules:
        for value in vars(module).values():
            is_structure = isinstance(value, type) and issubclass(value, ctypes.Structure)
            if is_structure and value.__module__ == module.__name__:
                yield value


def _c_name(structure: type[ctypes.Structure]) -> str:
    """``Windows`` and ``WindowsParameters`` are windows in C; ``CChain`` is chain, since Python has another Chain."""
    name = structure.__name__.lstrip("_").removesuffix("Parameters")
    return re.sub(r"(?<!^)(?=[A-Z])", "_", re.sub(r"^C(?=[A-Z])", "", name)).lower()


def _c_fields(name: str) -> list[tuple[str, str]]:
    """The fields of a C structure, in order, with the type of each: pointer, i64, double or a structure."""
    found = re.search(r"typedef struct \{([^}]*)\}\s*" + name + ";", _TEXT)
    assert found is not None, f"no C structure is named {name}"
    fields = []
    for declaration in filter(None, (part.strip() for part in found[1].split(";"))):
        kind, declared = re.fullmatch(r"(?:const )?(\w+)\b(.*)", declaration, re.DOTALL).groups()  # type: ignore[union-attr]
        for one in declared.split(","):
            stars, field, size = re.fullmatch(r"\s*(?:const )?(\**)\s*(?:const )?(\w+)(\[\w+\])?\s*", one).groups()  # type: ignore[union-attr]
            fields.append((field, ("pointer" if stars else kind) + (size or "")))
    return fields


def _python_type(kind: type) -> str:
    if kind is ctypes.c_void_p:
        return "pointer"
    if kind is ctypes.c_double:
        return "double"
    if kind is ctypes.c_int64:
        return "i64"
    if issubclass(kind, ctypes.Array):
        return f"{_python_type(kind._type_)}[{kind._length_}]"
    assert issubclass(kind, ctypes.Structure), kind
    return _c_name(kind)


@pytest.mark.parametrize("structure", list(_structures()), ids=lambda structure: structure.__name__)
def test_a_structure_has_the_fields_of_c(structure: type[ctypes.Structure]) -> None:
    fields = [(field[0], _python_type(field[1])) for field in structure._fields_]
    assert fields == _c_fields(_c_name(structure))


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


def test_the_sources_are_under_4300_lines() -> None:
    assert sum(len(path.read_text("utf-8").splitlines()) for path in SOURCE.glob("*.[ch]")) < 4300
