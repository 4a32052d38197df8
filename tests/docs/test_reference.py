"""The generated reference pages: every definition and element type is in them, with what its registry says."""

from __future__ import annotations

import importlib
import re
import shlex
from typing import Annotated, Literal

import pytest

import converters
import irexec
from irexec.analysis.codes import CODES
from irexec.dtypes.elements import ELEMENTS, Element
from irexec.ir.codes import Code
from irexec.schema.attributes import AttributeShape, NonNegatives, Positive
from irexec.schema.opdef import OpDef
from irexec.schema.registry import definitions
from tests.oracle.explained import KNOWN
from tests.support.cases import runnable_definitions
from tests.support.paths import ROOT


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    from irexec_reference import operations

    return operations.pages()


def _section(page: str, definition: OpDef) -> str:
    """The part of a page that describes one version."""
    heading = f"## {definition.type}-{definition.since}\n"
    assert page.count(heading) == 1
    return re.split(r"(?m)^## ", page.split(heading)[1])[0]


def test_every_definition_has_its_inputs_and_attributes(pages: dict[str, str]) -> None:
    for definition in definitions():
        section = _section(pages[f"operations/{definition.type}.md"], definition)
        for name in [
            *(spec.name for spec in definition.inputs),
            *(attribute.name for attribute in definition.attributes),
        ]:
            assert f"| `{name}` |" in section, f"{definition.type}-{definition.since} {name}"


# Their tests are graphs, not rows.
_WITHOUT = {"Parameter", "Constant", "ReadValue", "Assign", "If", "Loop", "TensorIterator"}


def test_every_definition_has_an_example(pages: dict[str, str]) -> None:
    lacking = {
        d.type for d in runnable_definitions() if "**Example**" not in _section(pages[f"operations/{d.type}.md"], d)
    }
    assert lacking == _WITHOUT


def test_every_known_difference_is_shown(pages: dict[str, str]) -> None:
    for known in KNOWN:
        for type in known.types:
            assert "Differences between implementations" in pages[f"operations/{type}.md"], type


def test_a_page_in_full(pages: dict[str, str]) -> None:
    page = pages["operations/CumSum.md"]
    assert "| 1 | `axis` |" in page
    assert "| `exclusive` | boolean | `false` |  |" in page
    assert "data: f32[" in page
    assert "result: f32[" in page


def test_the_index_has_every_version(pages: dict[str, str]) -> None:
    index = pages["operations/index.md"]
    for definition in definitions():
        assert f"({definition.type}.md#{definition.type}-{definition.since})".lower() in index.lower()


@pytest.mark.parametrize("row", CODES.values(), ids=lambda row: row.code)
def test_every_code_has_a_page(row: Code) -> None:
    from irexec_reference import codes

    pages = codes.pages()
    page = pages[f"codes/{row.code}.md"]
    assert page.startswith(f"# {row.code}: {row.name}\n")
    assert row.example in page
    assert f"[{row.code}]({row.code}.md) | {row.severity} |" in pages["codes/index.md"]


@pytest.mark.parametrize(
    ("annotation", "text"),
    [
        (int, "integer"),
        (Positive, "integer"),
        (NonNegatives, "list of integers"),
        (tuple[float, ...] | None, "list of numbers"),
        (Literal["a", "b"], "name"),
        (Element | None, "element type"),
        (AttributeShape, "partial shape"),
        (Annotated[float, 0], "number"),
    ],
)
def test_types_in_words(annotation: object, text: str) -> None:
    from irexec_reference.attributes import type_text

    assert type_text(annotation) == text


def test_every_element_type_is_in_the_table() -> None:
    from irexec_reference import elements

    (table,) = elements.pages().values()
    assert [f"`{e.name}`" for e in ELEMENTS] == [
        line.split(" | ")[0].removeprefix("| ") for line in table.splitlines()[2:]
    ]


def test_docstrings_become_markdown() -> None:
    from irexec_reference.markdown import prose

    assert (
        prose("a * b of ``x_y * 2`` [N, C]\n\n    - 1 where <0")
        == "a \\* b of `x_y * 2` \\[N, C\\]\n\n\\- 1 where \\<0"
    )


def test_every_public_name_is_documented() -> None:
    text = (ROOT / "docs" / "python" / "api.md").read_text("utf-8")
    found = set(re.findall(r"^\.\. auto\w+:: ([\w.]+)", text, re.MULTILINE))
    # The functions of the operations are described where the operations are, and a submodule exports names of its own.
    of_submodules = ("irexec.opset.", "irexec.io.", "irexec.plugins.")
    documented = {name.removeprefix("irexec.") for name in found if not name.startswith(of_submodules)}
    names = {name for name in irexec.__all__ if not isinstance(getattr(irexec, name), Element)}
    assert documented == names | {f"converters.{name}" for name in converters.__all__}


def test_commands_of_the_skill_have_their_options() -> None:
    """And what the table says to read is in the schema of the command."""
    text = (ROOT / "docs" / "SKILL.md").read_text("utf-8")
    rows = [line.split(" | ") for line in text.splitlines() if "`irexec " in line]
    assert len(rows) > 15
    for _, command, read in rows:
        _, name, *words = shlex.split(command.strip("`"))
        parameters = getattr(importlib.import_module(f"irexec.cli.{name}"), name).params
        known = {option for parameter in parameters for option in parameter.opts}
        assert {word for word in words if word.startswith("-")} <= known, command
        schema = (ROOT / "docs" / "reference" / "schemas" / f"{name}.json").read_text("utf-8")
        if "--json" in words:
            assert all(f'"{field}"' in schema for field in re.findall(r"`(\w+)`", read)), command
