"""Scalars and vectors of one element: what OpenVINO refuses of an input, irexec refuses."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import irexec
from irexec.analysis.builder import Builder, packed
from irexec.io import write_text
from irexec.testing import Case
from irexec.testing.rows import read_attributes
from tests.support.cases import families

_BY_CHOICE = {
    **dict.fromkeys(
        ("ReduceL1", "ReduceL2", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum"),
        "OpenVINO crashes where keep_dims is true: tests/cases/reduction.py",
    ),
    "Unique": "OpenVINO needs an axis that is a constant",
    "Interpolate": "OpenVINO refuses the value of the axis",
}


def _inputs() -> Iterator[tuple[Case, int]]:
    """Each input that has one element in a row."""
    seen = set()
    for rows in families().values():
        for row in rows:
            for i, given in enumerate(row.inputs if isinstance(row, Case) and row.since != "irexec" else ()):
                if given.array.size == 1 and given.array.ndim <= 1 and (row.type, row.since, i) not in seen:
                    seen.add((row.type, row.since, i))
                    yield row, i


def _written(row: Case, index: int, shape: tuple[int, ...]) -> tuple[bytes, bytes]:
    """A model of the row whose input has another shape; small inputs are constants."""
    builder = Builder("row")
    operands = []
    for i, given in enumerate(row.inputs):
        if i == index or (i and given.array.size <= 8):
            operands.append(builder.constant(given.array, given.element))
        else:
            operands.append(builder.parameter(given.element, given.array.shape, f"x{i}"))
    values = builder.emit(row.type, *operands, version=row.since, **read_attributes(row.definition, row.attributes))
    for value in values if isinstance(values, tuple) else (values,):
        builder.result(value)
    node, given = operands[index].node, row.inputs[index]
    node.constant = packed(given.array.reshape(shape), given.element)
    node.attributes["shape"] = ",".join(map(str, shape))
    return write_text(builder.model())


def _is_refused(text: bytes, weights: bytes) -> bool:
    """Whether a rule objects; declared shapes that are now wrong do not count."""
    model = irexec.read_model(text, weights)
    return any(finding.severity == "error" and finding.code < "IR2" for finding in irexec.validate(model))


@pytest.mark.slow
def test_validate_refuses_what_openvino_refuses() -> None:
    openvino = pytest.importorskip("openvino")
    core, checked, accepted = openvino.Core(), 0, []
    for row, index in _inputs():
        refusals = {}
        for shape in ((), (1,)):
            try:
                text, weights = map(bytes, _written(row, index, shape))
            except irexec.IrexecError:
                break
            try:
                core.read_model(text, openvino.Tensor(np.frombuffer(weights or b"\0", np.uint8)))
                refusals[shape] = None
            except RuntimeError as error:
                refusals[shape] = str(error).strip()[-120:]
            if refusals[shape] is not None and row.type not in _BY_CHOICE and not _is_refused(text, weights):
                accepted.append((row.id, index, shape, refusals[shape]))
        # An operation that OpenVINO refuses in both shapes is refused for another reason.
        both = len(refusals) == 2 and None not in refusals.values()
        accepted = [one for one in accepted if not (both and one[:2] == (row.id, index))]
        checked += len(refusals) == 2
    assert accepted == []
    assert checked > 250
