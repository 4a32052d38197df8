"""Accusations are confirmed before they are made: a tensor outside of its interval is not enough.

A runtime may keep an inner tensor in a higher precision than it returns. It may fuse layers although each of them is
observed: the observed tensors then are computed beside the fused ones. The layer after them reads other values than
were observed. Therefore layers outside of their intervals run once more, alone and with the observed inputs, which then
are exact; if they are inside, so do the layers before them together with them. What is outside then is confirmed.

A tensor that is not outside alone, or cannot be run alone, is judged with ever more of the layers before it, from
observed tensors with the error of a few roundings: it is accused only if it is outside of all of these intervals.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from irexec.ir.graph import Value
from irexec.tools.judge.judgement import JudgedLayer
from irexec.tools.judge.layers import Layers
from irexec.tools.judge.opponent import Tensors

_RUNS = 3
"""Number of runs alone: the layers, with the layers before them, and once more."""
_WIDTHS = (1, 2, 3, 5, 8, 12)
"""Numbers of layers in front of a layer that are judged together with it."""
_TRIED = 64
"""Number of tensors outside of their intervals for which this is done."""


def judged(layers: Layers, given: Tensors, values: Sequence[Value]) -> list[JudgedLayer]:
    """The judgements of values, in their order; ``given``: observed tensors and inputs."""
    found = dict(zip(values, layers.beside_all(given, values), strict=True))
    suspects = [value for value, one in found.items() if one.state == "outside"]
    for value in suspects[_TRIED:]:
        found[value] = replace(found[value], state="unconfirmed", reason="too many others were tried before it")
    suspects = suspects[:_TRIED]
    confirmed, was_run = _alone(layers, given, suspects)
    found |= confirmed
    for value in suspects:
        if value not in confirmed:
            found[value] = _together(layers, found[value], value, given, value in was_run)
    return list(found.values())


def _alone(layers: Layers, given: Tensors, suspects: Sequence[Value]) -> tuple[dict[Value, JudgedLayer], set[Value]]:
    """Judgements of tensors that are outside when their layers run alone, and the tensors that could be run."""
    confirmed: dict[Value, JudgedLayer] = {}
    was_run: set[Value] = set()
    left, inside_of = list(suspects), dict(given)
    for _ in range(_RUNS):
        made = layers.alone(left, inside_of) if left else {}
        was_run |= made.keys()
        for value, array in made.items():
            if (one := layers.beside(value, inside_of, array)).state == "outside":
                confirmed[value] = replace(one, alone=True)
        left = [value for value in left if value in made and value not in confirmed]
        earlier = layers.earlier(left, inside_of)
        if earlier is None:
            break
        inside_of = earlier
    return confirmed, was_run


def _together(layers: Layers, one: JudgedLayer, value: Value, given: Tensors, was_run: bool) -> JudgedLayer:
    """A tensor beside the intervals of more and more layers together; inside of any of them it is inside."""
    wider = None
    for sources in _wider(layers, value, given):
        wider = layers.beside(value, sources, given[value], rough=True)
        if wider.state != "outside":
            return wider if wider.state == "inside" else replace(one, state="unconfirmed", reason=wider.reason)
    if was_run and wider is None:
        return replace(one, state="unconfirmed", reason="it is inside when it runs alone with the observed inputs")
    return one


def _wider(layers: Layers, value: Value, given: Tensors) -> Iterator[Tensors]:
    sources: Tensors | None = given
    for width in range(1, _WIDTHS[-1] + 1):
        sources = layers.earlier([value], sources) if sources is not None else None
        if sources is None:
            return
        if width in _WIDTHS:
            yield sources
