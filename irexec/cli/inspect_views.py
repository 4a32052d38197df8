"""What irexec inspect shows of costs, memory, element types, names and values: as tables and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from irexec.analysis.text_bars import BLOCKS
from irexec.cli import render
from irexec.tools.arrays.histogram import Histogram
from irexec.tools.inspect import cost, memory, precision, tree
from irexec.tools.inspect.cost import CostReport, LayerCost
from irexec.tools.inspect.memory import MemoryReport
from irexec.tools.inspect.precision import PrecisionReport
from irexec.tools.inspect.tree import Branch, TreeReport


def show_cost(report: CostReport) -> None:
    """The layers and the types, the most expensive first, and the sums."""
    render.table(cost.HEADERS, [cost.cells(row, report) for row in report.rows()], right=cost.RIGHT, hide_empty=True)
    render.line()
    render.table(
        cost.TYPE_HEADERS,
        [cost.type_cells(row, report) for row in report.types],
        right=cost.TYPE_RIGHT,
        hide_empty=True,
    )
    render.line()
    render.lines(cost.totals(report))


def show_tree(report: TreeReport) -> None:
    """The branches and the sums."""
    rows = [tree.cells(guide, branch) for guide, branch in tree.walk(report.root, ascii=not render.can_show("├─└│"))]
    render.table(tree.HEADERS, rows, right=tree.RIGHT, hide_empty=True)
    render.line()
    render.lines(cost.totals(report.report))


def show_precision(report: PrecisionReport) -> None:
    """The layers in the order of the file, how weights are stored, the types of activations, and the sums."""
    render.table(
        precision.HEADERS, [precision.cells(row) for row in report.layers], right=precision.RIGHT, hide_empty=True
    )
    if report.weights:
        render.line()
        rows = [precision.storage_cells(row) for row in report.weights]
        render.table(precision.STORAGE_HEADERS, rows, right=precision.STORAGE_RIGHT, sentences=(1,), hide_empty=True)
    render.line()
    render.table(
        precision.ACTIVATION_HEADERS,
        map(precision.activation_cells, report.activations),
        right=precision.ACTIVATION_RIGHT,
    )
    render.line()
    render.lines(precision.totals(report))


def show_memory(report: MemoryReport) -> None:
    """The tensors that are alive at the peak, the memory over the layers, and the sums beside what the plan holds."""
    if report.alive:
        render.table(memory.HEADERS, map(memory.cells, report.alive), right=memory.RIGHT, whole=(3,), hide_empty=True)
        render.line()
    render.lines(memory.drawn(report, render.width() or 80, ascii=not render.can_show(BLOCKS)))
    render.lines(memory.totals(report))


def show_histograms(histograms: Sequence[Histogram]) -> None:
    """One below the other."""
    for found in histograms:
        render.line()
        render.lines(found.lines(render.width() or 80, ascii=not render.can_show(BLOCKS)))


def cost_document(report: CostReport) -> dict[str, Any]:
    """The costs as JSON."""
    document = asdict(report)
    document["layers"] = [_layer_cost(row) for row in report.layers]
    return document


def _layer_cost(row: LayerCost) -> dict[str, Any]:
    return asdict(row) | {"bytes": row.bytes, "intensity": row.intensity}


def tree_document(report: TreeReport) -> dict[str, Any]:
    """The tree as JSON."""
    return _branch(report.root)


def _branch(branch: Branch) -> dict[str, Any]:
    document = {
        "name": branch.name,
        "path": branch.path,
        "type": branch.type,
        "layers": branch.layers,
        **asdict(branch.cost),
    }
    return document | {"branches": [_branch(below) for below in branch.branches]}


def precision_document(report: PrecisionReport) -> dict[str, Any]:
    """The element types as JSON."""
    return asdict(report) | {"bits_per_weight": report.bits_per_weight}


def memory_document(report: MemoryReport) -> dict[str, Any]:
    """The memory as JSON."""
    return asdict(report)


def histogram_document(found: Histogram) -> dict[str, Any]:
    """A histogram as JSON."""
    return asdict(found)
