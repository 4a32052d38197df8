"""Constants against the bytes of the .bin."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from irexec.analysis.checks.graph import graphs
from irexec.analysis.shape_inference import Inference
from irexec.errors import IrexecError
from irexec.ir import codes
from irexec.ir.constants import Constant, constant_blocks, size_problem
from irexec.ir.findings import Finding, in_model
from irexec.ir.graph import Model, Node

# Where the range of a constant is wrong, bytes that belong to none are most likely its own.
_OTHER_RANGE = (codes.CONSTANT_ATTRIBUTE, codes.CONSTANT_OUT_OF_FILE, codes.NO_WEIGHTS_FILE, codes.CHANGED_BIN)

_Range = tuple[int, int, Node]


def constant_findings(model: Model, inference: Inference) -> Iterator[Finding]:
    """Sizes, overlaps and unused bytes, without reading any weight."""
    constants = [(node, node.constant) for node in model.walk() if node.constant is not None]
    sizes_are_right = True
    ranges: list[_Range] = []
    for node, constant in constants:
        wrong = size_problem(constant)
        if wrong is not None:
            sizes_are_right = False
            yield node.finding(codes.CONSTANT_SIZE, wrong)
        elif constant.offset is not None and constant.size > 0:
            ranges.append((constant.offset, constant.offset + constant.size, node))
    ranges.sort(key=lambda range: range[:2])
    known = sizes_are_right and (model.bin_path is not None or model.bin_size > 0) and not _is_a_constant_unclear(model)
    unused = _Unused(model.bin_size if known else 0, ranges if known else [])
    for first, second in _overlaps(ranges):
        yield unused.explain(first, second) or _overlap(first, second)
    gaps = unused.gaps
    # Tools that must have a .bin, and have nothing for it, write one byte.
    if gaps and not (model.bin_size == 1 and not ranges):
        total = sum(stop - start for start, stop in gaps)
        text = f"{total} of the {model.bin_size} bytes of the .bin belong to no constant, the first at {gaps[0][0]}..{gaps[0][1]}"
        yield in_model(codes.WEIGHTS_UNUSED, text)


def _is_a_constant_unclear(model: Model) -> bool:
    """Whether bytes of the .bin may belong to a layer of which the range is not known, or that is not read as a constant."""
    if any(problem.code in _OTHER_RANGE for graph in graphs(model) for problem in graph.problems):
        return True
    return any(node.constant is None and {"offset", "size"} <= node.attributes.keys() for node in model.walk())


def _overlaps(ranges: list[_Range]) -> Iterator[tuple[_Range, _Range]]:
    """Constants that share exactly the same bytes are one constant written once; to share some of them is damage."""
    last: _Range | None = None
    for start, stop, node in ranges:
        if last is not None and start < last[1] and (start, stop) != last[:2]:
            yield last, (start, stop, node)
        if last is None or stop > last[1]:
            last = (start, stop, node)


def _overlap(first: _Range, second: _Range) -> Finding:
    start, stop, node = second
    text = f"bytes {start}..{stop} overlap bytes {first[0]}..{first[1]} of layer {first[2].id} {first[2].name!r}"
    return node.finding(codes.WEIGHTS_OVERLAP, text)


class _Unused:
    """The ranges of bytes that belong to no constant, without those that a constant at the wrong offset explains."""

    def __init__(self, size: int, ranges: list[_Range]) -> None:
        self.by_length: dict[int, list[tuple[int, int]]] = {}
        covered = 0
        for start, stop in [*(range[:2] for range in ranges), (size, size)]:
            if start > covered:
                self.by_length.setdefault(start - covered, []).append((covered, start))
            covered = max(covered, stop)

    @property
    def gaps(self) -> list[tuple[int, int]]:
        """What is left, by offset."""
        return sorted(gap for gaps in self.by_length.values() for gap in gaps)

    def explain(self, first: _Range, second: _Range) -> Finding | None:
        """The overlap of two constants as a finding at the one that belongs where unused bytes are; None if that is so for none or both."""
        found = [(one, other) for one, other in ((first, second), (second, first)) if self.by_length.get(one[1] - one[0])]
        if len(found) == 1:
            moved, other = found[0]
            return self._moved(moved, other, self.by_length[moved[1] - moved[0]][0], ", as many,")
        shared = first[1] - second[0]
        for moved, other, gap in ((second, first, (second[1], second[1] + shared)), (first, second, (first[0] - shared, first[0]))):
            if gap in self.by_length.get(shared, ()):
                return self._moved(moved, other, gap, "")
        return None

    def _moved(self, moved: _Range, other: _Range, gap: tuple[int, int], many: str) -> Finding:
        self.by_length[gap[1] - gap[0]].remove(gap)
        finding = _overlap(other, moved)
        return replace(finding, message=f"{finding.message}; bytes {gap[0]}..{gap[1]}{many} belong to no constant")


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
