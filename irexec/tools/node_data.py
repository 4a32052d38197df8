"""Findings, costs, times and verdicts of layers as node data of Google's Model Explorer.

Source: node_data_builder.py of google-ai-edge/model-explorer. Keys are the ids of nodes, which are the names of layers,
after the path of the bodies around them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from irexec.ir.codes import by_number
from irexec.ir.findings import Finding
from irexec.ir.order import grouped
from irexec.runtime.profile import Profile
from irexec.tools.compare.comparison import Comparison
from irexec.tools.inspect.cost import CostReport
from irexec.tools.judge.judgement import Judgement

NodeData = dict[str, Any]
_GOOD, _BAD, _UNSURE, _PALE = "#cdeccd", "#f6b3ab", "#f9dfa3", "#dfdaf4"
_COLOURS = {
    "error": _BAD, "warning": _UNSURE, "info": _PALE,
    "agrees": _GOOD, "follows": _UNSURE, "differs": _BAD, "blind": _PALE,
    "inside": _GOOD, "outside": _BAD, "known": _UNSURE, "unconfirmed": _UNSURE, "no bound": _PALE,
}  # fmt: skip
_SCALE = [{"stop": 0, "bgColor": "#ffffff"}, {"stop": 1, "bgColor": "#e8663c"}]


def numbers(title: str, values: Mapping[str, float]) -> NodeData:
    """A number for each layer, the largest in the strongest colour."""
    return {"name": title, "results": {name: {"value": value} for name, value in values.items()}, "gradient": _SCALE}


def words(title: str, values: Mapping[str, str]) -> NodeData:
    """A word for each layer, coloured by the first part of it in front of a colon."""
    results = {}
    for name, word in values.items():
        colour = _COLOURS.get(word.partition(":")[0])
        results[name] = {"value": word, **({} if colour is None else {"bgColor": colour, "textColor": "#101010"})}
    return {"name": title, "results": results, "showExpandedSummaryOnGroupNode": True}


def of_findings(findings: Iterable[Finding]) -> NodeData:
    """The worst severity and the codes of each layer."""
    order = ("error", "warning", "info")
    values = {}
    for name, own in grouped((one.layer_name, one) for one in findings if one.layer_name is not None).items():
        codes = sorted({one.code for one in own}, key=by_number)
        values[name] = f"{min((one.severity for one in own), key=order.index)}: {', '.join(codes)}"
    return words("irexec findings", values)


def of_cost(found: CostReport) -> list[NodeData]:
    """Multiply-accumulates, and bytes read and written."""
    rows = [(f"{one.path}{one.name}", one) for one in found.layers]
    sizes = {name: one.read + one.written for name, one in rows if one.read is not None and one.written is not None}
    return [numbers("MACs", {name: one.macs for name, one in rows if one.macs}), numbers("bytes", sizes)]


def of_profile(found: Profile) -> NodeData:
    """Milliseconds of each layer that is computed by itself."""
    rows = found.rows("layer")
    return numbers("milliseconds", {one.name: one.milliseconds for one in rows if one.milliseconds is not None})


def of_judgement(found: Judgement) -> NodeData:
    """The state of each layer beside its interval; of several tensors the worst."""
    order = ("outside", "unconfirmed", "known", "no bound", "inside")
    states = sorted(found.layers, key=lambda one: order.index(one.state), reverse=True)
    return words(f"{found.runtime} in {found.arithmetic}", {one.layer.name: one.state for one in states})


def of_comparison(found: Comparison) -> NodeData:
    """The state of each layer of B; of several tensors the worst."""
    order = ("differs", "follows", "blind", "agrees")
    states = [(one.b.name, "blind" if one.is_blind else one.state) for one in found.rows]
    return words(f"{found.a} and {found.b}", dict(sorted(states, key=lambda one: order.index(one[1]), reverse=True)))
