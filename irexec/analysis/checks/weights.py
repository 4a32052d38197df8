"""Constants against the bytes of the .bin."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from irexec.analysis.shape_inference import Inference
from irexec.errors import IrexecError
from irexec.ir import codes
from irexec.ir.constants import Constant, constant_blocks, size_problem
from irexec.ir.findings import Finding, in_model
from irexec.ir.graph import Model, Node


def constant_findings(model: Model, inference: Inference) -> Iterator[Finding]:
    """Sizes, overlaps and unused bytes, without reading any weight."""
    constants = [(node, node.constant) for node in model.walk() if node.constant is not None]
    for node, constant in constants:
        wrong = size_problem(constant)
        if wrong is not None:
            yield node.finding(codes.CONSTANT_SIZE, wrong)
    ranges = sorted(
        ((c.offset, c.offset + c.size, node) for node, c in constants if c.offset is not None and c.size > 0), key=lambda range: range[:2]
    )
    yield from _overlaps(ranges)
    if model.bin_path is not None or model.bin_size:
        yield from _unused(model.bin_size, ranges)


def _overlaps(ranges: list[tuple[int, int, Node]]) -> Iterator[Finding]:
    """Constants that share exactly the same bytes are one constant written once; to share some of them is damage."""
    last: tuple[int, int, Node] | None = None
    for start, stop, node in ranges:
        if last is not None and start < last[1] and (start, stop) != last[:2]:
            text = f"bytes {start}..{stop} overlap bytes {last[0]}..{last[1]} of layer {last[2].id} {last[2].name!r}"
            yield node.finding(codes.WEIGHTS_OVERLAP, text)
        if last is None or stop > last[1]:
            last = (start, stop, node)


def _unused(size: int, ranges: list[tuple[int, int, Node]]) -> Iterator[Finding]:
    gaps, covered = [], 0
    for start, stop, _ in ranges:
        if start > covered:
            gaps.append((covered, start))
        covered = max(covered, stop)
    if covered < size:
        gaps.append((covered, size))
    if gaps:
        total = sum(stop - start for start, stop in gaps)
        text = f"{total} of the {size} bytes of the .bin belong to no constant, the first at {gaps[0][0]}..{gaps[0][1]}"
        yield in_model(codes.WEIGHTS_UNUSED, text)


def value_findings(model: Model, found: Sequence[Finding]) -> Iterator[Finding]:
    """NaN and infinities in the weights; every constant that the .bin has, and of which no error is found yet, is read in blocks.

    Before that, all bytes of the .bin are compared with what the .xml says of them, unless they are known to be others.
    """
    if model.check_bin is not None and all(finding.code != codes.CHANGED_BIN for finding in found):
        try:
            yield from model.check_bin(whole=True)
        except IrexecError as error:
            yield in_model(codes.WEIGHTS_UNREADABLE, str(error))
            return
    damaged = {(finding.line, finding.layer_id, finding.layer_name) for finding in found if finding.severity == "error"}
    for node in model.walk():
        if node.constant is None or not node.constant.is_readable or (node.line, node.id, node.name) in damaged:
            continue
        try:
            nans, infinities = _not_finite(node.constant)
        except IrexecError as error:
            yield node.finding(codes.WEIGHTS_UNREADABLE, str(error))
            continue
        if nans or infinities:
            text = f"contains {nans} NaN and {infinities} infinities among {node.constant.count} values"
            yield node.finding(codes.WEIGHTS_NOT_FINITE, text)


def _not_finite(constant: Constant) -> tuple[int, int]:
    """How many NaN and infinities; the constant is read whatever its type, so that it is known to be readable."""
    nans = infinities = 0
    for block in constant_blocks(constant):
        if constant.element.is_float:
            nans += int(np.isnan(block).sum())
            infinities += int(np.isinf(block).sum())
    return nans, infinities
