"""Recognise quantised values that are written in primitives, as ONNX's QuantizeLinear and DequantizeLinear are.

    Divide(x, step) -> Round -> Add zero point -> Clamp -> Convert to u8, i8      becomes  Quantize
    u8, i8 -> Convert -> Subtract zero point -> Multiply step                     becomes  Dequantize

Integers that are rounded from constants are stored as those of weights are.
i8 becomes levels from 0 on, where nothing else reads it. Levels are those of the primitives, which round a quotient of
f32 and add the zero point afterwards; the end of a product multiplies by the inverse step instead, as it always does.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from irexec.compile.graph import CompileGraph, CompileValue, Operation
from irexec.compile.levels import DEQUANTIZE, PRODUCTS, QUANTIZE, THROUGH, grid_attributes
from irexec.compile.passes.compute_in_integers import fake_quantized, may_use_integers
from irexec.compile.passes.fold_constants import fold
from irexec.compile.pattern import Match, Pattern, call, either, number, value
from irexec.compile.rewriting import Rewriting, created, leaks
from irexec.compile.select import is_static
from irexec.dtypes.elements import F32, I8, U8
from irexec.reference.grids import Grid

_ZERO = either(call("Convert", number("zero")), number("zero"))
_ROUNDED = call("Round", call("Divide", value("data"), number("step")), mode="half_to_even")
_QUANTISED = call("Convert", call("Clamp", either(call("Add", _ROUNDED, _ZERO), _ROUNDED)))
_CONVERTED = call("Convert", value("levels"))
_SHIFTED = either(call("Subtract", _CONVERTED, _ZERO), _CONVERTED)
_SCALED = call("Multiply", _SHIFTED, number("step"))
_DEQUANTISED = either(_SCALED, call("Subtract", _CONVERTED, _ZERO))

# Operations that make the integers of constant weights, at most.
_MOST = 12

_FIRST = {U8: 0, I8: -128}
"""The value that level 0 has in each type."""


def recognise_quantised_values(graph: CompileGraph, rewriting: Rewriting) -> None:
    """Replace the primitives, where products may be computed in integers."""
    if may_use_integers(graph, rewriting):
        values = _Quantised(graph, rewriting)
        for operation in graph.order():
            if operation in graph and operation.outputs and is_static(operation):
                values.rewrite(operation)


def write_fake_quantize(graph: CompileGraph, rewriting: Rewriting) -> None:
    """Replace Quantize and Dequantize of the same levels by one FakeQuantize; an ``irexec edit`` step, not a pass."""
    values = _Quantised(graph, rewriting)
    for operation in graph.order():
        found = values.match(operation, _SCALED, None) if operation.type == "Multiply" else None
        root = None if found is None else found.match["levels"].producer
        stored = None if root is None else values.match(root, _QUANTISED, root.output)
        if found is None or stored is None or stored.grid != found.grid or not values.has_limits(stored):
            continue
        origins = sorted({*stored.match.operations, *found.match.operations}, key=lambda one: one.rank)
        made = fake_quantized(graph, rewriting, stored.match["data"], found.grid, origins)
        graph.replace_all_uses_with(operation.output, made)
        rewriting.applied()


@dataclass(frozen=True)
class _Found:
    """Matched primitives, the grid of their levels and the value of level 0 in their type."""

    root: Operation
    match: Match
    grid: Grid
    first: int


class _Quantised:
    def __init__(self, graph: CompileGraph, rewriting: Rewriting) -> None:
        self.graph, self.rewriting = graph, rewriting

    def rewrite(self, operation: Operation) -> None:
        """Replace the primitives that end in an operation."""
        element = operation.output.fact.element
        if operation.type == "Convert" and element in _FIRST and (inside := _computed_weights(operation)):
            self._store(operation, inside)
        elif operation.type == "Convert" and element in _FIRST:
            found = self.match(operation, _QUANTISED, operation.output)
            if found is not None and self.has_limits(found):
                self._quantise(found)
        elif operation.type in ("Multiply", "Subtract") and element is F32:
            found = self.match(operation, _DEQUANTISED, None)
            others = [self.match(reader, _SCALED, None) for reader in operation.output.readers]
            is_part = operation.type == "Subtract" and any(one is not None for one in others)
            if found is not None and found.match["levels"].fact.element is U8 and not is_part:
                self._dequantise(found, found.match["levels"])

    def _store(self, operation: Operation, inside: list[Operation]) -> None:
        """Make integers of constants a constant that is stored, as weights are."""
        readers = list(operation.output.readers)
        for one in inside:
            fold(self.graph, one, self.rewriting)
        for made in (each.constant for reader in readers for each in reader.inputs):
            if made is not None and made.element in _FIRST and made.raw is None:
                made.hold_bytes()

    def match(self, root: Operation, pattern: Pattern, stored: CompileValue | None) -> _Found | None:
        """The primitives of a pattern, if nothing inside is read elsewhere."""
        # An Assign reads levels and has no output.
        match = next(pattern.match(root.output, Match()), None) if root.outputs else None
        if match is None or root not in match.operations or leaks(self.graph, match, root):
            return None
        stored = match["levels"] if stored is None else stored
        first = None if stored.fact.element is None else _FIRST.get(stored.fact.element)
        if stored.constant is not None or first is None or stored.fact.shape != root.output.fact.shape:
            return None
        zero = match.number("zero") if "zero" in match.constants else 0.0
        step = match.number("step") if "step" in match.constants else 1.0
        zero -= first
        if zero != round(zero) or not 0 <= zero <= 255 or not 0 < step < np.inf:
            return None
        return _Found(root, match, Grid.affine(int(zero), step), first)

    def has_limits(self, found: _Found) -> bool:
        """Whether f32 is limited to the whole range of the type."""
        data, clamp = found.match["data"], found.root.inputs[0].producer
        assert clamp is not None, "it was matched"
        is_whole = (clamp.attributes["min"], clamp.attributes["max"]) == (found.first, found.first + 255)
        return is_whole and data.fact.element is F32 and data.fact.shape == found.root.output.fact.shape

    def _quantise(self, found: _Found) -> None:
        stored = found.root.output
        of_bytes = [] if stored.fact.element is U8 else self._readers(stored)
        if of_bytes is None:
            self.rewriting.refused(found.root, "its integers are read by other operations than DequantizeLinear")
            return
        data, grid = found.match["data"], found.grid
        if not _is_sum(data) and _grid_of(data) != grid:
            # A product or a sum is rounded anyway; other data may lie halfway between two levels.
            rounded = next(one for one in found.match.operations if one.type == "Round")
            data, grid = rounded.output, Grid.affine(grid.zero, 1.0)
        origins = sorted(found.match.operations, key=lambda one: one.rank)
        levels = created(self.graph, QUANTIZE, [data], grid_attributes(grid), origins).output
        for reader in of_bytes:
            self._dequantise(reader, levels)
        self.graph.replace_all_uses_with(stored, levels) if stored.fact.element is U8 else None
        self._remove(found.match)
        self.rewriting.applied()

    def _readers(self, stored: CompileValue) -> list[_Found] | None:
        """The primitives that read a value; None if anything else does."""
        found = []
        for reader in stored.readers:
            roots = [one for value in reader.outputs for one in _two_steps(value)]
            matches = [self.match(root, _DEQUANTISED, None) for root in roots]
            matched = [one for one in matches if one is not None and one.match["levels"] is stored]
            if not matched:
                return None
            found.append(max(matched, key=lambda one: len(one.match.operations)))
        return None if self.graph.is_target(stored) else found

    def _dequantise(self, found: _Found, levels: CompileValue) -> None:
        origins = sorted(found.match.operations, key=lambda one: one.rank)
        made = created(self.graph, DEQUANTIZE, [levels], grid_attributes(found.grid), origins)
        self.graph.replace_all_uses_with(found.root.output, made.output)
        self._remove(found.match)
        self.rewriting.applied()

    def _remove(self, match: Match) -> None:
        for inside in sorted(dict.fromkeys(match.operations), key=lambda one: -one.rank):
            if inside in self.graph and not any(self.graph.is_used(output) for output in inside.outputs):
                self.graph.remove(inside)


def _computed_weights(convert: Operation) -> list[Operation]:
    """The operations of constants alone, a Round among them, that make the integers of a Convert; empty for others."""
    found: list[Operation] = []
    waiting = [convert]
    while waiting:
        operation = waiting.pop()
        if operation in found:
            continue
        found.append(operation)
        producers = [value.producer for value in operation.inputs if value.constant is None]
        if None in producers or len(found) > _MOST:
            return []
        waiting += [one for one in producers if one is not None]
    return sorted(found, key=lambda one: one.rank) if any(one.type == "Round" for one in found) else []


def _two_steps(value: CompileValue) -> list[Operation]:
    """The readers of a value and theirs, the last ones first."""
    near = list(value.readers)
    return [*(one for reader in near for one in reader.outputs[0].readers), *near]


def _is_sum(value: CompileValue, *, is_term: bool = False) -> bool:
    """Whether a value is a product or a sum of quantised values, perhaps within limits."""
    producer = value.producer
    if producer is None:
        return False
    if producer.type in ("Relu", "Clamp"):
        return _is_sum(producer.inputs[0])
    if producer.type == "Multiply":
        return any(_is_sum(one) for one in producer.inputs)
    if producer.type == "Add":
        return any(_is_sum(one, is_term=True) for one in producer.inputs)
    return producer.type in PRODUCTS or (is_term and producer.type == "Dequantize")


def _grid_of(value: CompileValue) -> Grid | None:
    """The grid of a value that operations pass on from one of Dequantize."""
    producer = value.producer
    while producer is not None and producer.type in THROUGH:
        producer = producer.inputs[0].producer
    return producer.attributes["grid"] if producer is not None and producer.type == "Dequantize" else None
