"""The inputs of both sides: those that are given, random ones, or the tensors of the model that the other one is a part
of."""

from __future__ import annotations

from collections.abc import Sequence

from irexec.errors import InputError
from irexec.tools.compare.context import Context
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
from irexec.tools.compare.options import Side
from irexec.tools.compare.sides import ModelSide, RecordedSide
from irexec.tools.engines.runtimes import Arrays
from irexec.tools.images.files import Notify
from irexec.tools.run.input_sources import InputSource


def feed(context: Context, given: Sequence[Given], sources: Sequence[InputSource], notify: Notify) -> Side | None:
    """Add the inputs of all runs to those of the comparison.

    Args:
        context: the comparison.
        given, sources: as for ``compare``.
        notify: takes what the user might not expect.

    Returns:
        The side of which the other one is a part; None if neither is.

    Raises:
        InputError: an input is missing, or what is given does not fit.
    """
    a, b, options = context.a, context.b, context.options
    if isinstance(a, RecordedSide):
        known = {**recorded_inputs(a, b), **given[0]}
        missing = [str(port) for port in b.model.inputs if port.name not in known]
        if missing and not sources:
            raise InputError(
                f"{a.label} does not hold the inputs that its tensors were computed from ({', '.join(missing)}): give them with -i"
            )
        random_or_given(context.inputs, sources, options, 1, notify, [known])
        return None
    named = named_inputs(given, sources)
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
    context: Context,
    a: ModelSide,
    given: Sequence[Given],
    sources: Sequence[InputSource],
    notify: Notify,
    *,
    of_a: bool,
) -> None:
    """Give a part the tensors of the other model, which are its inputs."""
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
