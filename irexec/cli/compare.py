"""irexec compare"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import click

from irexec.cli import render
from irexec.cli.compute_options import COMPUTE, ComputeOptions, precision_as
from irexec.cli.differences import reasons, say
from irexec.cli.next_steps import after_compare, as_given, reads_stdin
from irexec.cli.option_groups import Option, OptionGroup, command, option, settings
from irexec.cli.options import LIMITS, MEASURING, InputOptions, LimitOptions
from irexec.cli.paths import FilePath
from irexec.cli.progress import progress_bar
from irexec.messages import counted, listed
from irexec.tools.arrays.agreement import METRICS
from irexec.tools.compare import CompareOptions, Comparison, Divergence, Suspect, TensorRow
from irexec.tools.compare import compare as compare_models
from irexec.tools.engines.runtimes import RUNTIMES

_AROUND = 3
"""Rows that are shown before and after the first divergence."""
_NAMES = 8


class PairOfNames(click.ParamType):
    """``A=B``: the names of two tensors."""

    name = "pair"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        """Both names."""
        one, _, other = str(value).partition("=")
        if not one or not other or "=" in other:
            return self.fail(f"{value!r} is not a pair of names, expected A=B", param, ctx)
        return one, other


def _runtime(side: str) -> Option:
    return option(
        f"--{side.lower()}-runtime",
        type=click.Choice(RUNTIMES),
        default="irexec",
        show_default=True,
        help=f"The runtime of {side}. reference: irexec's reference kernels; onnx: the reference evaluator of onnx.",
    )


_RUNTIMES = OptionGroup(
    "Runtimes and weights",
    CompareOptions,
    {
        "a_runtime": _runtime("A"),
        "b_runtime": _runtime("B"),
        "a_weights": option("--a-bin", type=FilePath(), help="The weights of A; default: the .bin beside it."),
        "b_weights": option("--b-bin", type=FilePath(), help="The weights of B; default: the .bin beside it."),
    },
)
_COMPARISON = OptionGroup(
    "Comparison",
    CompareOptions,
    {
        "metric": option(
            "--metric",
            type=click.Choice(METRICS),
            help="Decides whether tensors agree; default: max, or snr after quantisation.",
        ),
        "rtol": option(
            "--rtol", type=float, help="Relative tolerance of max; default: 1e-4 for f32, 0.01 for f16, 0.05 for bf16."
        ),
        "atol": option(
            "--atol",
            type=float,
            help="Absolute tolerance of max; default: rtol times the root mean square of A's tensor.",
        ),
        "threshold": option(
            "--threshold",
            type=float,
            help="Of the other metrics: at most 0.001 (rel), at least 0.999 (cosine) or 30 dB (snr).",
        ),
        "maps": option(
            "--map", multiple=True, type=PairOfNames(), metavar="A=B", help="Pair these two tensors; may be repeated."
        ),
        "inputs_of": option(
            "--from-inputs-of",
            type=click.Choice(["A", "B"]),
            help="The inputs of the other model are tensors of this one.",
        ),
        "isolate": option(
            "--isolate",
            is_flag=True,
            help="Run each layer of B alone, with the tensors of A as inputs: errors do not add up.",
        ),
        "tries": option(
            "--tries",
            type=click.IntRange(1, 1000),
            default=1,
            show_default=True,
            help="Compare with so many inputs, until a fault is found.",
        ),
        "strict": option(
            "--strict",
            is_flag=True,
            help="Count tensors that are paired by structure alone, even if everything computed from them agrees.",
        ),
    },
)


@command()
@click.argument("a", type=FilePath())
@click.argument("b", type=FilePath(), required=False)
@_RUNTIMES("sides")
@MEASURING(
    "inputs",
    given={"help": "As for infer: a file, or random, zeros or ones."},
    shapes={"help": "Set the shape of an input of both; may be repeated."},
    runs={
        "type": click.IntRange(1, 1000),
        "default": None,
        "show_default": False,
        "help": "Number of runs, with state from run to run; default: 2 with state, else 1.",
    },
)
@_COMPARISON("comparison")
@COMPUTE("compute", only=("precision",), precision=precision_as("as the other runtime does, or f32"))
@LIMITS(
    "limits",
    threads={"help": "Number of threads of each runtime; default: the runtime's own."},
    timeout={"help": "Stop a run that takes longer; exit code 124."},
)
@click.option(
    "--all", "shows_all", is_flag=True, help="Show every tensor, not only those around the first that differs."
)
@click.option("--json", "as_json", is_flag=True, help="Versioned JSON, with every tensor.")
def compare(
    a: str,
    b: str | None,
    sides: CompareOptions,
    inputs: InputOptions,
    comparison: CompareOptions,
    compute: ComputeOptions,
    limits: LimitOptions,
    shows_all: bool,
    as_json: bool,
) -> int:
    """Find where two models diverge: every tensor of B against the same tensor of A, and the first layer that differs.

    \b
    irexec compare model.xml damaged.xml
    irexec compare model.onnx model.xml --a-runtime onnxruntime
    irexec compare model.xml --b-runtime openvino --isolate
    irexec compare tensors.npz model.xml -i image.npy
    irexec compare f32.xml int8.xml --metric snr --all

    A and B are .xml or .onnx; A may also be a .npz of tensors, or a folder that infer --dump-layers wrote. Without B it is A in
    another runtime. Tensors are paired by tensor names, layer names, structure and values. A guess from structure is dropped if what is
    computed from it agrees. The exit code is 1 if anything differs.
    """
    request = settings(
        CompareOptions, comparison, inputs, compute, limits,
        **{name: getattr(sides, name) for name in _RUNTIMES.options},
    )  # fmt: skip
    with progress_bar(f"comparing {a}", 1.0) as advance:
        found = compare_models(a, b, None, request, sources=inputs.sources, notify=render.note_line, advance=advance)
    if as_json:
        render.as_json(found.as_dict())
    else:
        _show(found, shows_all)
        if _is_reducible(found, request) and not reads_stdin(inputs.given):
            same = list(as_given(inputs.given, request.shapes, request.seed))
            after_compare(a, b, request.a_runtime, request.b_runtime, same)
    return 0 if found.agrees else 1


def _is_reducible(found: Comparison, request: CompareOptions) -> bool:
    """True if irexec reduce can cut out the part that diverges."""
    has_weights = request.a_weights is not None or request.b_weights is not None
    return found.first is not None and found.whole is None and len(found.rows) > 1 and not has_weights


def _show(found: Comparison, shows_all: bool) -> None:
    for note in found.notes:
        render.note_line(note)
    if found.verdict:
        say(found.verdict)
        render.line()
    _show_rows(_shown(found, shows_all))
    render.line()
    if found.first is not None:
        _show_divergence(found.first, found)
    for one in found.known:
        is_first = found.first is not None and one.layer.name == found.first.row.b.name
        say(f"known: {one}" if is_first else f"known of {one.layer}: {one}", "  ")
    for text in _ending(found):
        say(text)


def _shown(found: Comparison, shows_all: bool) -> Sequence[TensorRow]:
    """The rows around the first divergence and the results; without one, those that differ most."""
    if shows_all or len(found.rows) <= 2 * _AROUND + 2:
        return found.rows
    chosen = set()
    if found.first is not None:
        at = found.rows.index(found.first.row)
        chosen = set(range(max(0, at - _AROUND), at + _AROUND + 1))
    else:
        order = sorted(range(len(found.rows)), key=lambda i: -_relative(found.rows[i]))
        chosen = set(order[:_AROUND])
    results = {row.b for row in found.results}
    return [row for i, row in enumerate(found.rows) if i in chosen or row.b in results]


def _relative(row: TensorRow) -> float:
    return row.agreement.relative or 0.0


def _show_rows(rows: Sequence[TensorRow]) -> None:
    cells = [
        (
            _name(row),
            row.b.type,
            row.state,
            row.agreement.largest,
            row.agreement.relative,
            _decibels(row),
        )
        for row in rows
    ]
    render.table(("tensor", "layer type", "", "largest", "relative", "SNR"), cells, right=(3, 4, 5), what="tensors")


def _name(row: TensorRow) -> str:
    path, _, own = row.b.tensor.rpartition("/") if _is_inside(row) else ("", "", row.b.tensor)
    name = f"{own} in {path}" if path else own
    if row.agreement.agrees:
        return name
    where = [*([f"run {row.run}"] if row.run > 1 else []), *(f"iteration {i}" for i in row.iteration)]
    return f"{own} ({', '.join(where)}){f' in {path}' if path else ''}" if where else name


def _is_inside(row: TensorRow) -> bool:
    """Whether a tensor is inside a body."""
    return bool(row.iteration) or any(f"/{body}/" in row.b.name for body in ("body", "then_body", "else_body"))


def _decibels(row: TensorRow) -> str | None:
    snr = row.agreement.snr
    return None if snr is None else "equal" if math.isinf(snr) and snr > 0 else f"{snr:.1f} dB"


def _show_divergence(first: Divergence, found: Comparison) -> None:
    row = first.row
    where = "".join([f", run {row.run}" if row.run > 1 else "", *(f", iteration {i}" for i in row.iteration)])
    say(f"first divergence: {row.b}{where}")
    say(row.agreement.message, "  ")
    for text in reasons(first.suspect):
        say(text, "  ")
    if row.a is not None and row.a.name != row.b.name:
        say(f"in A it is {row.a}, matched by {row.how}", "  ")
    _show_between(first)
    others = [layer for layer in found.independent if layer.name != row.b.name]
    if others:
        title = (
            "also differing by themselves"
            if found.isolated
            else "also differing although what they are computed from agrees"
        )
        say(f"{title}: {listed([f'{layer.name} ({layer.type})' for layer in others], _NAMES)}")


def _show_between(first: Divergence) -> None:
    """The layers in front that are not compared: what differs in them, and the names of the others."""
    described = [suspect for suspect in first.between if _differences(suspect)]
    for suspect in described[:_NAMES]:
        say(f"in front of it, and not compared: {suspect.layer}", "  ")
        for text in _differences(suspect):
            say(text, "    ")
    others = [
        f"{suspect.layer.name} ({suspect.layer.type})" for suspect in first.between if suspect not in described[:_NAMES]
    ]
    if others:
        say(f"in front of it, and not compared: {listed(others, _NAMES)}", "  ")


def _differences(suspect: Suspect) -> list[str]:
    """What differs in a layer itself."""
    return list(reasons(replace(suspect, inputs=tuple(one for one in suspect.inputs if one.agrees is False))))


def _ending(found: Comparison) -> Iterator[str]:
    """Counts."""
    count = len(found.differing)
    agree = len(found.rows) - count
    alone = ", each layer alone with the tensors of A" if found.isolated else ""
    follow = sum(bool(row.follows) for row in found.differing)
    only = f", {follow} of them only because their inputs do" if follow else ""
    yield f"{counted(len(found.rows), 'tensor')} compared{alone}: {agree} agree, {count} differ{only}; {found.tolerance}"
    bad = [row.b.tensor for row in found.results if not row.agreement.agrees]
    if bad:
        yield f"results that differ: {listed(bad, _NAMES)}"
    if found.missing_results:
        yield f"results that could not be compared: {listed(found.missing_results, _NAMES)}"
    if found.blind:
        blind = listed([row.b.tensor for row in found.blind], _NAMES)
        yield f"blind, since all their values are the same with these inputs: {blind}; --tries 5 compares with others too"
    for reason, names in _by_reason(found).items():
        yield f"not compared, {reason}: {listed(names, _NAMES)}"


def _by_reason(found: Comparison) -> dict[str, list[str]]:
    reasons: dict[str, list[str]] = {}
    for one in found.uncompared:
        reasons.setdefault(one.reason, []).append(one.name)
    return reasons
