"""The text of a script."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

from irexec.ir.graph import Body, Graph, Node, Value
from irexec.ir.order import Names, grouped
from irexec.tools.script.expressions import Block, Row, Statement, find_blocks, quoted, written
from irexec.tools.script.statements import Statements, Weights, ends

_WIDTH = 120
_IDENTIFIER = re.compile(r"[A-Za-z]\w{0,30}", re.ASCII)
_TAKEN = (
    "Model", "float", "made", "model", "nodes", "np", "opset", "packed", "range", "row", "set_metadata", "sys",
    "weight", "weights",
)  # fmt: skip


@dataclass
class Functions:
    """Writes the functions of a script.

    Attributes:
        weights: takes the constants.
        failures: layers of which inference fails.
        names: the names of functions and variables.
        bodies: the functions of bodies so far.
        blocks: the functions of repeated blocks so far.
        last: the last lines of the function of the model, before it returns.
    """

    weights: Weights
    failures: frozenset[Node]
    names: Names = field(default_factory=lambda: Names((*_TAKEN, *keyword.kwlist)))
    bodies: list[str] = field(default_factory=list)
    blocks: list[str] = field(default_factory=list)

    def model(self, graph: Graph) -> list[str]:
        """The lines of the function that makes the model, apart from the return."""
        writer = _Writer(self, graph)
        head = ["def model() -> Model:", '    """The model."""']
        return [*head, *writer.lines(), *in_lines(4, f"made = {writer.ending('Model', graph.name)}")]

    def body(self, node: Node, kind: str, body: Body) -> str:
        """Write a body as a function; a call of the function."""
        name = self.names.free(_word(kind, "body"))
        writer = _Writer(self, body.graph)
        head = [f"def {name}():", f"    # Of {quoted(node.name)}."]
        lines = [*head, *writer.lines(), *writer.named_results()]
        ending = writer.ending("opset.body", body.graph.name, writer.port_maps(node, body))
        self.bodies.append("\n".join([*lines, *in_lines(4, f"return {ending}")]))
        return f"{name}()"


class _Writer:
    """Writes the statements of one graph, repeated blocks as calls of functions."""

    def __init__(self, functions: Functions, graph: Graph) -> None:
        self._functions, self._graph = functions, graph
        statements = Statements(functions.weights, functions.failures, functions.body).of(graph)
        self.results = [statement for statement in statements if statement.node.type == "Result"]
        self._parameters = [statement for statement in statements if statement.node.type == "Parameter"]
        self._inner = [s for s in statements if s.node.type not in ("Parameter", "Result")]
        self._refs: dict[Value, str] = {}
        self._named_results: dict[Node, str] = {}
        self._readers: Mapping[Value, Sequence[int]] = {}

    def lines(self) -> Iterator[str]:
        """The lines that make the Parameters and the layers."""
        for statement in self._parameters:
            yield from self._made(statement)
        kept = {value for node in self._graph.results for value in node.inputs if value is not None}
        kept |= {value for node in ends(self._graph) for value in node.outputs[:1]}
        blocks = find_blocks(self._inner, frozenset(kept))
        self._readers = _readers(self._inner, kept)
        yield from self._blocks({row.start: (block, i) for block in blocks for i, row in enumerate(block.rows)})

    def _blocks(self, starts: Mapping[int, tuple[Block, int]]) -> Iterator[str]:
        names: dict[int, str] = {}
        position = 0
        while position < len(self._inner):
            if position not in starts:
                yield from self._made(self._inner[position])
                position += 1
                continue
            block, first = starts[position]
            if id(block) not in names:
                names[id(block)] = self._functions.names.free("block")
                self._functions.blocks.append("\n".join(_function(block, names[id(block)])))
            rows = list(self._run(block, first))
            if len(rows) > 1 and (sources := _loop_inputs(rows)) is not None:
                yield from self._loop(block, names[id(block)], rows, sources)
            else:
                rows = rows[:1]
                arguments = [*(self._refs[value] for value in rows[0].inputs), *rows[0].arguments]
                targets = [self._variable(value) for value in rows[0].outputs]
                call = f"{names[id(block)]}({', '.join(arguments)})"
                yield from _assigned(4, targets, call, is_tuple=len(targets) > 1)
            position += block.length * len(rows)

    def _run(self, block: Block, first: int) -> Iterator[Row]:
        """The occurrences from one on that follow each other without a gap, and of which only the next one reads the
        outputs of one."""
        for i in range(first, len(block.rows)):
            row = block.rows[i]
            yield row
            end = row.start + block.length
            is_next = i + 1 < len(block.rows) and block.rows[i + 1].start == end
            readers = (reader for value in row.outputs for reader in self._readers.get(value, ()))
            if not is_next or any(reader >= end + block.length for reader in readers):
                return

    def _made(self, statement: Statement, indent: int = 4) -> Iterator[str]:
        """The lines of one layer."""
        source = written(statement.call, {}, self._refs)
        targets = [self._variable(value) for value in statement.node.outputs]
        yield from _assigned(indent, targets, source, is_tuple=statement.is_tuple)
        yield from _further_names(statement, targets, indent)

    def _variable(self, value: Value) -> str:
        node = value.node
        is_word = _IDENTIFIER.fullmatch(node.name) and node.type == "Parameter"
        base = node.name if is_word else _word(node.type)
        self._refs[value] = name = self._functions.names.free(base)
        return name

    def _loop(self, block: Block, name: str, rows: Sequence[Row], sources: Sequence[int | None]) -> Iterator[str]:
        """The lines of calls that follow each other, as a loop over their arguments."""
        targets = [self._variable(value) for value in rows[-1].outputs]
        for place, source in zip(rows[0].inputs, sources, strict=True):
            if source is not None:
                yield f"    {targets[source]} = {self._refs[place]}"
        inputs = [
            self._refs[place] if source is None else targets[source]
            for place, source in zip(rows[0].inputs, sources, strict=True)
        ]
        if block.parameters:
            comma = "," if len(block.parameters) == 1 else ""
            yield "    for row in ("
            for row in rows:
                yield from in_lines(8, f"({', '.join(row.arguments)}{comma}),")
            yield "    ):"
            inputs.append("*row")
        else:
            yield f"    for _ in range({len(rows)}):"
        yield from _assigned(8, targets, f"{name}({', '.join(inputs)})", is_tuple=len(targets) > 1)

    def named_results(self) -> Iterator[str]:
        """The lines of the Results, for which port maps and back edges need variables."""
        for statement in self.results:
            self._named_results[statement.node] = name = self._functions.names.free("result")
            yield from in_lines(4, f"{name} = {written(statement.call, {}, self._refs)}")

    def ending(self, function: str, name: str, more: Sequence[str] = ()) -> str:
        """The call that collects the graph."""
        results = [self._named_results.get(s.node) or written(s.call, {}, self._refs) for s in self.results]
        parameters = [self._refs[s.node.outputs[0]] for s in self._parameters]
        arguments = [f"[{', '.join(results)}]", f"[{', '.join(parameters)}]", *more]
        sinks = [self._refs[node.outputs[0]] for node in ends(self._graph) if node.outputs]
        if sinks:
            arguments.append(f"sinks=[{', '.join(sinks)}]")
        if name:
            arguments.append(f"name={quoted(name)}")
        return f"{function}({', '.join(arguments)})"

    def port_maps(self, node: Node, body: Body) -> list[str]:
        """The arguments of a body for its port maps and back edges."""
        inner = {n.id: self._refs[n.outputs[0]] for n in body.graph.parameters} | {
            n.id: self._named_results[n] for n in body.graph.results
        }
        found: dict[str, list[str]] = {"input": [], "output": []}
        for entry in body.port_maps:
            index = node.input_index(entry.external) if entry.kind == "input" else node.output_index(entry.external)
            attributes = ", ".join(f"{quoted(key)}: {quoted(text)}" for key, text in entry.attributes.items())
            more = f", {{{attributes}}}" if attributes else ""
            if entry.kind == "output" and index is not None:
                index += len(node.ports)
            found[entry.kind].append(f"({-1 if index is None else index}, {inner[entry.internal]}{more})")
        made = [f"{kind}s=[{', '.join(entries)}]" for kind, entries in found.items()]
        if body.back_edges:
            edges = ", ".join(f"({inner[edge.source]}, {inner[edge.target]})" for edge in body.back_edges)
            made.append(f"back_edges=[{edges}]")
        return made


def _word(text: str, default: str = "layer") -> str:
    """A name for a variable or function after what a file says."""
    word = re.sub(r"\W", "", text, flags=re.ASCII).lower()
    return word if word[:1].isalpha() else default


def _readers(statements: Sequence[Statement], kept: Iterable[Value]) -> dict[Value, list[int]]:
    """The indices of the statements that read each tensor; for the tensors that are read after them one more."""
    inputs = ((value, i) for i, statement in enumerate(statements) for value in statement.node.inputs)
    reads = ((value, i) for value, i in inputs if value is not None)
    return grouped(chain(((value, len(statements)) for value in kept), reads))


def _loop_inputs(rows: list[Row]) -> list[int | None] | None:
    """Sources of the inputs of occurrences that follow each other: an output of the one before, or None for a tensor
    that all of them read. Shortens ``rows`` to those for which this holds; None if there are not at least two."""
    sources: list[int | None] = []
    for one, other in zip(rows[0].inputs, rows[1].inputs, strict=True):
        sources.append(None if one is other else rows[0].outputs.index(other) if other in rows[0].outputs else -1)
    if -1 in sources or len({s for s in sources if s is not None}) != sum(s is not None for s in sources):
        return None
    count = 1
    while count < len(rows) and all(
        value is (rows[0].inputs[i] if source is None else rows[count - 1].outputs[source])
        for i, (value, source) in enumerate(zip(rows[count].inputs, sources, strict=True))
    ):
        count += 1
    del rows[count:]
    return sources if count > 1 else None


def _function(block: Block, name: str) -> Iterator[str]:
    """The lines of the function of a repeated block."""
    variables = Names((*_TAKEN, *keyword.kwlist, *block.parameters))
    refs = {value: variables.free("x") for value in block.rows[0].inputs}
    yield from in_lines(0, f"def {name}({', '.join([*refs.values(), *block.parameters])}):")
    for statement in block.statements:
        source = written(statement.call, block.texts, refs)
        targets = []
        for value in statement.node.outputs:
            refs[value] = variables.free(_word(value.node.type))
            targets.append(refs[value])
        yield from _assigned(4, targets, source, is_tuple=statement.is_tuple)
        yield from _further_names(statement, targets, 4, block.texts)
    yield from in_lines(4, f"return {_together([refs[value] for value in block.rows[0].outputs])}")


def _further_names(
    statement: Statement, targets: Sequence[str], indent: int, texts: Mapping[int, str] | None = None
) -> Iterator[str]:
    """The lines that name the outputs of a layer after the first."""
    for target, names in zip(targets[1:], statement.more, strict=True):
        if texts and id(names) in texts:
            yield " " * indent + f"{target}.named(*{texts[id(names)]})"
        elif names.names:
            yield from in_lines(indent, f"{target}.named({', '.join(map(quoted, names.names))})")


def _assigned(indent: int, targets: Sequence[str], source: str, *, is_tuple: bool) -> Iterator[str]:
    if not targets:
        yield from in_lines(indent, source)
        return
    together = _together(targets)
    yield from in_lines(indent, f"{f'({together},)' if is_tuple and len(targets) == 1 else together} = {source}")


def _together(targets: Sequence[str]) -> str:
    """Variables as a tuple, in parentheses if there are many, since lines end inside of brackets only."""
    return f"({', '.join(targets)})" if len(targets) > 3 else ", ".join(targets)


def in_lines(indent: int, source: str) -> Iterator[str]:
    """A statement in lines of the width, broken after commas that are in no string."""
    line = " " * indent
    for part in _parts(source):
        if len(line) + len(part.rstrip()) > _WIDTH and line.strip():
            yield line.rstrip()
            line = " " * (indent + 4)
        line += part
    yield line.rstrip()


def _parts(source: str) -> Iterator[str]:
    """The source in parts that a line can end after: after a comma in brackets and outside of strings."""
    start = position = depth = 0
    quote = ""
    while position < len(source):
        character = source[position]
        if quote:
            position += character == "\\"
            quote = "" if character == quote else quote
        elif character in "\"'":
            quote = character
        elif character in "([{":
            depth += 1
        elif character in ")]}":
            depth -= 1
        elif depth and source.startswith(", ", position):
            yield source[start : position + 2]
            start = position + 2
        position += 1
    yield source[start:]
