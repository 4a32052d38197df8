"""The operations that irexec runs, and the unsupported operations of a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from irexec.analysis.execution_graph import refuse_execution_graph
from irexec.api import ModelLike, as_model
from irexec.display import Column, Content, Table, Text
from irexec.errors import InputError, UnsupportedError
from irexec.records import Record, Records, Report
from irexec.schema.registry import NEWEST_OPSET, definitions, opset_versions, resolve


@dataclass(frozen=True)
class OperationLine(Record):
    """One supported version of an operation; ``summary`` is the first line of its docstring."""

    type: str
    version: str
    inputs: tuple[str, ...]
    attributes: tuple[str, ...]
    summary: str


@dataclass(frozen=True)
class Coverage(Report):
    """Number of types and versions of OpenVINO up to an opset, of supported versions, and of supported extensions."""

    opset: int
    types: int
    versions: int
    supported: int
    extensions: int

    def sections(self) -> list[Content]:
        """A sentence."""
        text = f"{self.supported} of {self.versions} versions of OpenVINO's operations up to opset{self.opset} "
        return [Text(f"{text}({self.types} types), {self.extensions} of others", "title")]


def operations_table(lines: Sequence[OperationLine], has_details: bool) -> Table:
    """Operations, with their inputs and attributes if ``has_details``."""
    details = [
        Column("inputs", lambda line: ", ".join(line.inputs), "sentence"),
        Column("attributes", lambda line: ", ".join(line.attributes), "sentence"),
    ]
    columns = [Column("type", "type"), Column("version", "version"), *(details if has_details else [])]
    return Table([*columns, Column("summary", "summary", "sentence")], lines, what="operations")


def coverage() -> Coverage:
    """Counted from the registry."""
    run = {(definition.type, definition.since) for definition in definitions()}
    known = set(opset_versions())
    return Coverage(NEWEST_OPSET, len({type for type, _ in known}), len(known), len(run & known), len(run - known))


def supported() -> Records[OperationLine]:
    """Every operation that irexec runs."""
    return Records(
        OperationLine(
            type=one.type,
            version=one.version,
            inputs=tuple(f"*{i.name}" if i.variadic else f"{i.name}?" if i.optional else i.name for i in one.inputs),
            attributes=tuple(attribute.name for attribute in one.attributes),
            summary=" ".join((one.kernel.__doc__ or "").strip().split("\n\n")[0].split()).replace("``", ""),
        )
        for one in definitions()
    )


def matching(words: tuple[str, ...]) -> Records[OperationLine]:
    """The operations whose type contains one of the words, in any letter case; a word that is a type stands for itself.

    A type may follow its version and a dot, as in "my.ops.SoftTopK".

    Raises:
        InputError: no type contains one of the words; the message offers similar ones.
    """
    lines = supported()
    types = {line.type.lower(): line.type for line in lines}
    chosen: set[str] = set()
    qualified = {f"{line.version}.{line.type}".lower(): line.type.lower() for line in lines}
    for word in words:
        part = qualified.get(word.lower(), word.lower())
        found = {part} if part in types else {type for type in types if part in type}
        if not found:
            import difflib

            near = difflib.get_close_matches(part, types, 3)
            offer = f"; similar types are {', '.join(types[type] for type in near)}" if near else ""
            raise InputError(f"there is no operation {word!r}{offer}")
        chosen |= found
    return Records(line for line in lines if line.type.lower() in chosen)


def unsupported(model: ModelLike) -> list[str]:
    """One sentence for each type and version in a model, or what read_model takes, that irexec does not run.

    Raises:
        ModelError: the file is an execution graph.
    """
    model = as_model(model)
    refuse_execution_graph(model)
    found = []
    for type, version in sorted({(node.type, node.version) for node in model.walk()}):
        try:
            resolve(type, version)
        except UnsupportedError as error:
            found.append(str(error))
    return found
