"""The plan of a model as a table and as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from irexec.cli import render
from irexec.compile.plan_report import HEADERS, RIGHT, PlanReport, cells, totals


def show_report(report: PlanReport, verbose: bool) -> None:
    """The table of steps and the totals; ``verbose`` adds all layers of each step, and why passes left layers as they are."""
    render.table(HEADERS, [cells(row) for row in report.steps], right=RIGHT, whole=(4, 5), hide_empty=True)
    render.line()
    for text in totals(report):
        render.line(text)
    if verbose:
        _show_details(report)


def _show_details(report: PlanReport) -> None:
    rows = [
        (row.number, row.path + row.layers[0], ", ".join(row.layers[1:])) for row in report.steps if len(row.layers) > 1
    ]
    if rows:
        render.line()
        render.table(("step", "layer", "layers computed with it"), rows, right=(0,), sentences=(2,))
    reasons = report.reasons()
    if reasons:
        render.line()
        lines = [(reason.pass_name, reason.reason, len(reason.layers), ", ".join(reason.layers)) for reason in reasons]
        render.table(("pass", "left alone because", "count", "layers"), lines, right=(2,), sentences=(1, 3))


def plan_document(report: PlanReport) -> dict[str, Any]:
    """The plan as JSON."""
    document = asdict(report) | {"removed": report.removed}
    # What is held from which step to which is part of --memory.
    del document["held"]
    document["steps"] = [asdict(row) | {"order": row.order} for row in report.steps]
    return document
