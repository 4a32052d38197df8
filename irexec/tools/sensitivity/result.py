"""The result of a measurement of sensitivity."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from irexec.display import Column, Content, Table, Text, sections_of
from irexec.messages import counted
from irexec.records import Record, Records, Report
from irexec.tools.compare.comparison import ComparedLayer

_SHOWN = 20


@dataclass(frozen=True)
class LayerSensitivity(Record):
    """A layer that alone has fewer bits.

    Attributes:
        layer: the layer.
        error: the relative error of the results: root mean square of the error divided by that of the results.
        share: of the sum of the squares of all errors, from 0 to 1; layers with infinite errors share alike.
        saturated: number of elements of its outputs in f32 beyond the largest number of the type.
        dead: number of output channels that are 0 throughout.
        channels: number of output channels.
    """

    layer: ComparedLayer
    error: float
    share: float
    saturated: int = 0
    dead: int = 0
    channels: int = 0

    @property
    def snr(self) -> float:
        """The ratio of the results to their error in decibels."""
        return decibels(self.error)


@dataclass(frozen=True)
class MixedPrecision(Record):
    """The fewest layers in f32 with which the results are right enough.

    Attributes:
        kept: names of the layers that stay in f32.
        error: the relative error of the results with all others in the type.
        ignored_scope: Python that names these layers for NNCF; "" if there are none.
        command: the ``irexec edit`` that makes the model; "" if it would change nothing.
    """

    kept: tuple[str, ...]
    error: float
    ignored_scope: str
    command: str


@dataclass(frozen=True)
class Sensitivity(Report):
    """The share of each layer in the error of a model with fewer bits.

    Attributes:
        model: its path or name.
        type: "f16", "bf16", "int8", "int4", or the path or name of the quantised model.
        layers: the layers, the largest error first.
        together: the relative error of the results with all these layers in the type.
        target: the SNR in decibels that the proposal reaches.
        proposal: the fewest layers in f32; None if the target cannot be reached.
        samples: number of runs.
        further: of a quantised model that reaches the target, names of layers that could have weights in int8 too.
    """

    model: str
    type: str
    layers: Records[LayerSensitivity]
    together: float
    target: float
    proposal: MixedPrecision | None
    samples: int = 1
    further: tuple[str, ...] = ()


def decibels(error: float) -> float:
    """The SNR of a relative error: infinite for 0, and minus infinity for one that is not finite."""
    if math.isnan(error) or math.isinf(error):
        return -math.inf
    return -20 * math.log10(error) if error else math.inf


def percent(share: float) -> str:
    """A share as text."""
    return f"{share:.1%}" if share >= 0.0005 or not share else "<0.1%"


def _in_decibels(error: float) -> str:
    found = decibels(error)
    return "exact" if found == math.inf else "not finite" if found == -math.inf else f"{found:.1f} dB"


@sections_of.register
def _(found: Sensitivity) -> Iterable[Content]:
    return [sensitivity_sections(found)]


def sensitivity_sections(found: Sensitivity, shows_all: bool = False) -> Iterator[Content]:
    """The layers with the largest errors, and the proposal."""
    layers = found.layers if shows_all else found.layers[:_SHOWN]
    yield Table(
        [
            Column("id", lambda one: one.layer.id, "number"),
            Column("layer", lambda one: one.layer.name, "path"),
            Column("type", lambda one: one.layer.type),
            Column("SNR alone", lambda one: _in_decibels(one.error)),
            Column("share", lambda one: percent(one.share)),
            Column("saturated", lambda one: one.saturated or None, "number"),
            Column("dead", lambda one: f"{one.dead} of {one.channels}" if one.dead else None),
        ],
        layers,
        what="layers",
    )
    if len(layers) < len(found.layers):
        yield f"and {counted(len(found.layers) - len(layers), 'layer')} of smaller errors"
    yield f"all {counted(len(found.layers), 'layer')} in {found.type}: {_in_decibels(found.together)}"
    proposal = found.proposal
    if proposal is None:
        yield Text(f"no choice of layers reaches {found.target:g} dB", "error")
        return
    if proposal.kept:
        kept = counted(len(proposal.kept), "layer")
        yield Text(f"{kept} in f32, the others in {found.type}: {_in_decibels(proposal.error)}", "title")
    else:
        yield Text(f"no layer needs f32 for {found.target:g} dB", "title")
    yield from (Text(text, "code") for text in (proposal.ignored_scope, proposal.command) if text)
    if found.further:
        yield f"weights that int8 could store too: {', '.join(found.further)}"
