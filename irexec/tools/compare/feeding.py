"""Inputs of both sides: given arrays, random arrays, or tensors of the whole model for a part of it."""

from __future__ import annotations

from collections.abc import Sequence

from irexec.errors import InputError
from irexec.tools.compare.inputs import (
    Given,
    Inputs,
    named_inputs,
    random_or_given,
    recorded_inputs,
    same_tensors,
    whole_side,
)
from irexec.tools.compare.observe import observe
from irexec.tools.compare.open_sides import OpenSides
from irexec.tools.compare.options import Side
from irexec.tools.compare.sides import ModelSide, RecordedSide
from irexec.tools.engines.runtimes import Arrays
from irexec.tools.images.files import Notify
from irexec.tools.run.input_sources import InputSource, sources_of_step


def feed(context: OpenSides, given: Sequence[Given], sources: Sequence[InputSource], notify: Notify) -> Side | None:
    """Add the inputs of all runs to the comparison.

    Args:
        context: the comparison.
        given, sources: as for ``compare``.
        notify: receives unexpected facts.

    Returns:
        The side that has the other one as a part; None without such a side.

    Raises:
        InputError: an input is missing, or a given array does not fit.
    """
    a, b, options = context.a, context.b, context.options
    if isinstance(a, RecordedSide):
        known = {**recorded_inputs(a, b), **given[0]}
        missing = [str(port) for port in b.model.inputs if port.name not in known]
        if missing and not sources:
            raise InputError(
                f"{a.label} does not hold the inputs of its tensors ({', '.join(missing)}): give them with -i"
            )
        random_or_given(context.inputs, sources, options, 1, notify, [known])
        return None
    named = named_inputs(given, sources if options.runs is None else sources_of_step(sources, 1, context.runs))
    whole = options.inputs_of
    if whole is None and a.model is not b.model:
        whole = whole_side(a, b, named, notify)
    if whole is not None:
        _feed_part(context, a, given, sources, notify, of_a=whole == "A")
        return whole
    if not sources:
        context.inputs.require_partners(named)
    random_or_given(context.inputs, sources, options, context.runs, notify, given)
    return None


def _feed_part(
    context: OpenSides,
    a: ModelSide,
    given: Sequence[Given],
    sources: Sequence[InputSource],
    notify: Notify,
    *,
    of_a: bool,
) -> None:
    """Add the tensors of the whole model as inputs of a part."""
    whole, part, runtime = (a, context.b, context.run_a) if of_a else (context.b, a, context.run_b)
    if runtime is None:
        raise AssertionError("both sides are models")
    tensors = same_tensors(whole, part, context.pairs)
    for port in part.model.inputs:
        value, of_whole = port.node.outputs[0], tensors[port.name]
        one, other = (of_whole, value) if of_a else (value, of_whole)
        context.pairs.by_b[other] = one
    outer = Inputs(None, whole, context.pairs)
    random_or_given(outer, sources, context.options, context.runs, notify, given)
    found = observe(runtime, outer.b, tensors.values())
    for value in tensors.values():
        if value in found.failures:
            raise InputError(
                f"{value.name!r}, which is an input of {part.label}, cannot be had: {found.failures[value]}"
            )
    inner: list[Arrays] = [
        {name: found.arrays[value][run] for name, value in tensors.items()} for run in range(context.runs)
    ]
    context.inputs.a, context.inputs.b = (outer.b, inner) if of_a else (inner, outer.b)
