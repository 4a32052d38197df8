"""Differences of layers with bodies, which are no rows of one operation."""

from __future__ import annotations

from irexec import Builder, Model
from irexec.ir.graph import BackEdge, Body, PortMap


def iterated(*, reads_slices: bool) -> Model:
    """A TensorIterator over three rows of its first input, whose body adds them to its second input, or doubles that each time."""
    builder = Builder("m")
    inner = Builder("body", inside=builder)
    row, state = inner.parameter("f32", (1, 4), "row"), inner.parameter("f32", (1, 4), "state")
    left = inner.emit("Add", state, row if reads_slices else state)
    results = [inner.result(left), inner.result(left)]
    graph = inner.model()
    sliced = {"axis": "0", "start": "0", "end": "-1", "stride": "1", "part_size": "1"}
    body = Body(
        graph,
        port_maps=[
            PortMap("input", 0, row.node.id, dict(sliced)),
            PortMap("input", 1, state.node.id, {}),
            PortMap("output", 2, results[0].id, dict(sliced)),
        ],
        back_edges=[BackEdge(results[1].id, state.node.id)],
    )
    rows, start = builder.parameter("f32", (3, 4), "rows"), builder.parameter("f32", (1, 4), "start")
    (stacked,) = builder.emit("TensorIterator", rows, start, bodies={"body": body}, name="iterated")
    builder.result(stacked)
    return builder.model()


BODIES = {"IR941": (iterated(reads_slices=True), iterated(reads_slices=False))}
"""For codes a model that does not have the difference, and one that has."""
