"""Constants against the bytes of the .bin."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from irexec.analysis.shape_inference import Inference
from irexec.errors import IrexecError
from irexec.ir import codes
from irexec.ir.constants import Constant, constant_blocks, size_problem
from irexec.ir.findings import Finding, in_model
from irexec.ir.graph import ModelGraph, Node


def constant_findings(model: ModelGraph, inference: Inference) -> Iterator[Finding]:
    """Sizes, overlaps and unused bytes, without reading any weight."""
    constants = [(node, node.constant) for node in model.walk() if node.constant is not None]
    for node, constant in constants:
        wrong = size_problem(constant)
        if wrong is not None:
            yield node.finding(codes.CONSTANT_SIZE, wrong)
    ranges = sorted(
        ((c.offset, c.offset + c.size, node) for node, c in constants if c.offset is not None and c.size > 0),
        key=lambda range: range[:2],
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
    # The writer gives constants without elements a file with one byte.
    if covered < size and size > 1:
        gaps.append((covered, size))
    if gaps:
        total = sum(stop - start for start, stop in gaps)
        text = f"{total} of the {size} bytes of the .bin belong to no constant, the first at {gaps[0][0]}..{gaps[0][1]}"
        yield in_model(codes.WEIGHTS_UNUSED, text)


def value_findings(model: ModelGraph, found: Sequence[Finding]) -> Iterator[Finding]:
    """NaN, infinities and values beyond f16 in the weights.

    Every constant that the .bin has, and of which no error is found yet, is read in blocks.

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
            values = _counted(node.constant)
        except IrexecError as error:
            yield node.finding(codes.WEIGHTS_UNREADABLE, str(error))
            continue
        count = node.constant.count
        if values.nans or values.infinities:
            text = f"contains {values.nans} NaN and {values.infinities} infinities among {count} values"
            yield node.finding(codes.WEIGHTS_NOT_FINITE, text)
        if values.beyond_f16:
            zeros = f", {values.zero_in_f16} become 0" if values.zero_in_f16 else ""
            yield node.finding(
                codes.WEIGHTS_BEYOND_F16, f"{values.beyond_f16} of {count} values become infinite in f16{zeros}"
            )


@dataclass
class _Counts:
    """Numbers of NaN and infinite values of a constant, and of finite values that f16 makes infinite or 0."""

    nans: int = 0
    infinities: int = 0
    beyond_f16: int = 0
    zero_in_f16: int = 0


def _counted(constant: Constant) -> _Counts:
    """The counts of a constant. A constant of any type is read, which shows that it is readable."""
    found = _Counts()
    for block in constant_blocks(constant):
        if not constant.element.is_float:
            continue
        with np.errstate(over="ignore", under="ignore"):
            half = block.astype(np.float16)
        infinite = np.isinf(block)
        found.nans += int(np.isnan(block).sum())
        found.infinities += int(infinite.sum())
        found.beyond_f16 += int((np.isinf(half) & ~infinite).sum())
        found.zero_in_f16 += int(((half == 0) & (block != 0)).sum())
    return found
