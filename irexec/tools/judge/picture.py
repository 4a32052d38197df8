"""A judgement as a picture: the graph of the model, with the runtime beside irexec in each layer."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from irexec.bounds import Interval
from irexec.ir.graph import Value
from irexec.tools.arrays.agreement import Tolerance, agreement_of
from irexec.tools.graph.beside import Beside, PairedTensor, tensors, with_images
from irexec.tools.judge.judgement import JudgedLayer
from irexec.tools.judge.step import Case

_STATES = {
    "differs": "outside of the interval",
    "unsure": "outside, not accused",
    "agrees": "inside of the interval",
    "blind": "without a bound",
    "unpaired": "not judged",
}
_STATE = {"outside": "differs", "known": "unsure", "unconfirmed": "unsure", "inside": "agrees", "no bound": "blind"}


def picture(case: Case) -> Beside:
    """A judgement as a picture."""
    found, values = case.judgement, {value.name: value for node in case.side.order for value in node.outputs}
    judged = [(one, values[one.layer.tensor]) for one in found.layers if one.layer.tensor in values]
    rows = [_row(case, one, value) for one, value in judged]
    drawn = with_images(rows)
    rows = [
        replace(row, tensors=_tensors(case, value, i in drawn))
        for i, (row, (_, value)) in enumerate(zip(rows, judged, strict=True))
    ]
    accused = {one.layer.tensor for one in found.at or [one for one, _ in judged if one.state == "outside"]}
    first = next((i for i, (one, _) in enumerate(judged) if one.layer.tensor in accused), None)
    label = f"{found.model}: irexec and {' '.join(filter(None, (found.runtime, found.version.split('-')[0])))}"
    return Beside(found.sentence, ((label, case.side.model),), rows, _STATES, first)


def _row(case: Case, one: JudgedLayer, value: Value) -> PairedTensor:
    facts = [("tensor", one.layer.tensor), ("judged", f"{one.outside:,} of {one.elements:,} elements outside")]
    if one.value is not None:
        at = f" at {list(one.position)}" if one.position else ""
        facts.append(("the worst", f"{one.value:.8g}{at}, expected {one.low:.8g} to {one.high:.8g}"))
    if one.excess is not None:
        facts.append(("beyond the interval", f"{one.excess:.3g} radii of it"))
    more = {
        "recorded as": one.recorded, "reason": one.reason, "together with": ", ".join(one.region),
        "known differences": ", ".join(one.codes), "may be anything": f"{one.free:,} elements" if one.free else "",
    }  # fmt: skip
    facts += [(name, text) for name, text in more.items() if text]
    ours, seen, ratio = case.step.ours.get(value), case.seen.get(value), None
    if ours is not None and seen is not None and ours.shape == seen.shape and ours.dtype.kind == "f":
        ratio = agreement_of(value.name, seen, ours, Tolerance(), "irexec").snr
    return PairedTensor(None, value.node, _STATE[one.state], tuple(facts), ratio)


def _tensors(case: Case, value: Value, is_drawn: bool) -> dict[str, object] | None:
    """Both tensors, with the interval that follows from the runtime's own inputs."""
    seen, interval = case.seen.get(value), None
    if seen is not None and value.node.type != "Parameter":
        given = {source: array for source, array in case.seen.items() if source is not value}
        bound = case.step.evidence.beside(value, given, seen).bound
        if isinstance(bound, Interval):
            interval = np.asarray(bound.low), np.asarray(bound.high)
    return tensors(("irexec", "runtime"), case.step.ours.get(value), seen, interval, is_drawn=is_drawn)
