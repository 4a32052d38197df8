"""Constants against the bytes of the .bin."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from irexec.analysis.findings import (
    CONSTANT_SIZE,
    WEIGHTS_NOT_FINITE,
    WEIGHTS_OVERLAP,
    WEIGHTS_UNREADABLE,
    WEIGHTS_UNUSED,
    Finding,
    at,
)
from irexec.errors import IrexecError
from irexec.ir.constants import constant_value, size_problem
from irexec.ir.graph import Model, Node


def constant_findings(model: Model) -> Iterator[Finding]:
    """Sizes, overlaps and unused bytes, without reading any weight."""
    constants = [node for node in model.walk() if node.constant is not None]
    for node in constants:
        yield from _size(node)
    yield from _overlaps(constants)
    yield from _unused(model, constants)


def _size(node: Node) -> Iterator[Finding]:
    wrong = None if node.constant is None else size_problem(node.constant)
    if wrong is not None:
        yield at(node, CONSTANT_SIZE, wrong)


def _ranges(constants: list[Node]) -> list[tuple[int, int, Node]]:
    spans = [(c.offset, c.offset + c.size, node) for node in constants if (c := node.constant) and c.offset is not None and c.size > 0]
    return sorted(spans, key=lambda span: span[:2])


def _overlaps(constants: list[Node]) -> Iterator[Finding]:
    """Constants that share exactly the same bytes are one constant written once; to share some is damage."""
    reach: tuple[int, int, Node] | None = None
    for start, end, node in _ranges(constants):
        if reach is not None and start < reach[1] and (start, end) != reach[:2]:
            text = f"bytes {start}..{end} overlap bytes {reach[0]}..{reach[1]} of layer {reach[2].id} {reach[2].name!r}"
            yield at(node, WEIGHTS_OVERLAP, text, severity="warning")
        if reach is None or end > reach[1]:
            reach = (start, end, node)


def _unused(model: Model, constants: list[Node]) -> Iterator[Finding]:
    if model.bin_path is None and not model.bin_size:
        return
    gaps, reach = [], 0
    for start, end, _ in _ranges(constants):
        if start > reach:
            gaps.append((reach, start))
        reach = max(reach, end)
    if reach < model.bin_size:
        gaps.append((reach, model.bin_size))
    if gaps:
        total = sum(end - start for start, end in gaps)
        first = f"the first at {gaps[0][0]}..{gaps[0][1]}"
        text = f"{total} of the {model.bin_size} bytes of the .bin belong to no constant, {first}"
        yield Finding(WEIGHTS_UNUSED, "warning", None, None, None, None, None, text)


def value_findings(model: Model) -> Iterator[Finding]:
    """NaN and infinities in the weights; every constant is read."""
    for node in model.walk():
        if node.constant is None:
            continue
        try:
            value = constant_value(node.constant)
        except IrexecError as error:
            yield at(node, WEIGHTS_UNREADABLE, str(error))
            continue
        if node.constant.element.is_float:
            yield from _not_finite(node, value)


def _not_finite(node: Node, value: np.ndarray) -> Iterator[Finding]:
    nans, infinities = int(np.isnan(value).sum()), int(np.isinf(value).sum())
    if nans or infinities:
        text = f"holds {nans} NaN and {infinities} infinities among {value.size} numbers"
        yield at(node, WEIGHTS_NOT_FINITE, text, severity="warning")
