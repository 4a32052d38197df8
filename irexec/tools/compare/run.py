"""The comparison of two models, tensor by tensor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import NoReturn

from irexec.analysis.model import Model
from irexec.api import ModelLike
from irexec.compile.memory_limit import MemoryLimit
from irexec.errors import InputError, NodeError
from irexec.messages import counted, silent
from irexec.tools.compare.blame import without_followers
from irexec.tools.compare.bodies import with_bodies
from irexec.tools.compare.comparison import Comparison
from irexec.tools.compare.evidence import Advance, Evidence
from irexec.tools.compare.inputs import Given, Ports, facts_of, inputs_of_runs
from irexec.tools.compare.options import (
    RTOL,
    CompareOptions,
    Tolerances,
    WeightPrecision,
    opened_runtime,
    weight_precision,
)
from irexec.tools.compare.pairing import corrected
from irexec.tools.compare.pairs import first_pairs
from irexec.tools.compare.rows import Found, Rows, compared
from irexec.tools.compare.summary import independent, summary, without_reordering
from irexec.tools.engines.runtimes import require_runtime
from irexec.tools.images import Notify
from irexec.tools.observing.sides import AnySide, ModelSide, RecordedSide, open_side
from irexec.tools.run.input_sources import GivenInputs, InputSource, given_runs
from irexec.tools.run.result_files import read_state, with_state
from irexec.tools.run.shapes import refused, reshape

_PART = 0.08
"""Fraction of the work that precedes each pass over the rows, for the progress; most of it is ``compared``."""
PASSES: tuple[Callable[[Evidence, Rows], Rows], ...] = (with_bodies, without_followers, without_reordering)
"""Passes over the rows, in the order in which they run."""


def compare(
    a: ModelLike,
    b: ModelLike | None = None,
    inputs: Given | Sequence[Given] | None = None,
    options: CompareOptions | None = None,
    *,
    sources: Sequence[InputSource] = (),
    notify: Notify = silent,
    advance: Advance = silent,
    output: str | None = None,
) -> Comparison:
    """Compare two models, or one model in two runtimes, tensor by tensor.

    Args:
        a: the reference: a model, a path that read_model accepts, or the path of a .npz or of a folder of ``infer
            --dump-layers``.
        b: a model, or a path that read_model accepts; by default the same as ``a``.
        inputs: arrays by the names of inputs of A or else of B; one mapping for each of several runs. Other inputs come
            from ``sources``.
        options: the options of runs and comparison.
        sources: sources of other inputs; by default random ones.
        notify: receives unexpected facts.
        advance: see Advance.
        output: the .html or .svg to draw the comparison to; None draws nothing.

    Raises:
        InputError: the options, inputs or shapes do not fit the models, both sides are the same, or ``output`` has
            another suffix.
        UnsupportedError: a runtime is not installed.
        ModelError, NodeError, ConversionError: a model cannot be read, or cannot run at all.
        RunTimeoutError: a run takes longer than the timeout.
    """
    options = options or CompareOptions()
    if output is not None:
        from irexec.tools.graph.beside import check_picture

        check_picture(output, {})
    with ExitStack() as stack:
        given = GivenInputs(sources, given_runs(inputs), steps=options.runs)
        made = compared_models(stack, a, b, given, options, notify, advance)
        if options.tries > 1 and isinstance(made.evidence.a, RecordedSide):
            raise InputError(f"{made.evidence.a.label} holds tensors of one run: --tries needs two models")
        found = summary(made.evidence, made.rows, made.layouts)
        if output is not None:
            _draw(output, made, found)
    blind = {row.b for row in found.blind}
    for number in range(1, options.tries if found.agrees else 1):
        seed = options.seed + number
        others = [] if made.evidence.inputs.whole else made.ports.others(made.evidence.inputs, seed)
        with ExitStack() as stack:
            given = GivenInputs([InputSource(None, "random")], others)
            again = compared_models(stack, a, b, given, replace(options, seed=seed))
            other = summary(again.evidence, again.rows, again.layouts)
            if output is not None and not other.agrees:
                _draw(output, again, other)
        if not other.agrees:
            note = f"found with other inputs: those of try {number + 1} of {options.tries}, which are random"
            return replace(other, notes=(note, *other.notes))
        blind &= {row.b for row in other.blind}
    if options.tries == 1 or not found.agrees:
        return found
    rows = tuple(replace(row, is_blind=row.b in blind) for row in found.rows)
    note = f"{options.tries} tries agree, all but the first with random inputs"
    return replace(found, rows=rows, notes=(*found.notes, note))


def _draw(output: str, made: ComparedModels, found: Comparison) -> None:
    # Most comparisons draw nothing.
    from irexec.tools.compare.picture import picture
    from irexec.tools.graph.beside import write_picture

    write_picture(output, picture(made.evidence, made.rows, found))


@dataclass(frozen=True, eq=False)
class ComparedModels:
    """Two models with their rows.

    Attributes:
        evidence: both sides.
        ports: their inputs.
        rows: the rows, each with the verdict on its layer.
        layouts: sentences about recorded tensors in another layout.
    """

    evidence: Evidence
    ports: Ports
    rows: Rows
    layouts: Sequence[str]

    @property
    def independent(self) -> list[Found]:
        """Tensors that differ by themselves, in the order of their computation."""
        return independent(self.evidence, self.rows)


def compared_models(
    stack: ExitStack,
    a: ModelLike,
    b: ModelLike | None,
    given: GivenInputs,
    options: CompareOptions,
    notify: Notify = silent,
    advance: Advance = silent,
) -> ComparedModels:
    """Two models, compared, with both sides open until the stack is closed; errors are those of ``compare``."""
    if b is None and options.a_runtime == options.b_runtime:
        raise InputError(
            "one model in one runtime has nothing to be compared with: give a second model, or another runtime"
        )
    require_runtime(options.a_runtime)
    require_runtime(options.b_runtime)
    memory, shapes = MemoryLimit(options.max_memory), options.shapes or {}
    one = open_side(stack, a, options.a_weights, options.a_runtime, memory, shapes, given)
    b_weights = options.b_weights or (options.a_weights if b is a else None)
    other = one if b is None else open_side(stack, b, b_weights, options.b_runtime, memory, shapes, given, one)
    if isinstance(other, RecordedSide):
        raise InputError(
            f"{other.label} holds recorded tensors, which can only be A: give it first, and the model after it"
        )
    if options.load_state is not None:
        state = read_state(options.load_state, memory)
        if isinstance(one, ModelSide):
            one = ModelSide(one.label, with_state(one.model, state), one.runtime)
        if b is not None:
            other = ModelSide(other.label, with_state(other.model, state), other.runtime)
    if b is None and isinstance(one, ModelSide):
        other = ModelSide(one.label, one.model, options.b_runtime)
    _check(one, other, options)
    pairs = first_pairs(one, other, options.maps)
    if shapes:
        shapes_of_b = shapes
        if isinstance(one, ModelSide) and one.model is not other.model:
            shapes_of_b = Ports(one, other, pairs.by_b).shapes_of_b(shapes)
            reshape(one.model, shapes, tolerant=True)
        reshape(other.model, shapes_of_b, tolerant=True)
    model = one.model if isinstance(one, ModelSide) else None
    run_a = None if model is None else stack.enter_context(opened_runtime(options, options.a_runtime, model))
    run_b = stack.enter_context(opened_runtime(options, options.b_runtime, other.model))
    count = _runs(one, other, given, options)
    inputs = inputs_of_runs(one, other, pairs.by_b, (run_a, run_b), given, options, count, notify)
    pairs = replace(pairs, by_b={**pairs.by_b, **inputs.partners})
    layouts: list[str] = []
    if isinstance(one, RecordedSide):
        facts = facts_of(other.model, inputs.b)
        one, layouts = one.arranged([(pair.a, pair.b) for pair in pairs.tensors if isinstance(pair.a, str)], facts)
    of_a, of_b = weight_precision(model), weight_precision(None if model is None else other.model)
    if isinstance(one, RecordedSide):
        stated = one.arithmetic.partition(" ")[0]
        of_a = WeightPrecision(RTOL.get(stated, of_a.rtol))
    evidence = Evidence(one, other, options, run_a, run_b, inputs, Tolerances(options, of_a, of_b), advance)
    ports = Ports(one if isinstance(one, ModelSide) else None, other, pairs.by_b)
    rows = compared(evidence, corrected(evidence, pairs))
    if not rows.found:
        _raise_nothing(evidence, rows)
    for one_pass in PASSES:
        evidence.advance(_PART)
        rows = one_pass(evidence, rows)
    return ComparedModels(evidence, ports, rows, layouts)


def _runs(a: AnySide, b: ModelSide, given: GivenInputs, options: CompareOptions) -> int:
    """The number of runs."""
    has_state = isinstance(a, ModelSide) and (a.has_state or b.has_state)
    count, arrays = options.runs or (2 if has_state else 1), len(given.arrays)
    if isinstance(a, RecordedSide) and count > 1:
        raise InputError("recorded tensors are of one run")
    if arrays > 1 and options.runs not in (None, arrays):
        raise InputError(f"inputs are given for {counted(arrays, 'run')}, and runs is {options.runs}")
    return arrays if arrays > 1 else count


def _check(a: AnySide, b: ModelSide, options: CompareOptions) -> None:
    if isinstance(a, RecordedSide):
        if options.a_runtime != "irexec":
            raise InputError(f"{a.label} holds recorded tensors, which nothing runs: --a-runtime is for a model")
        if options.inputs_of is not None or options.isolate:
            raise InputError(f"{a.label} holds recorded tensors: --from-inputs-of and --isolate need two models")
    if options.isolate and options.b_runtime in ("onnx", "onnxruntime"):
        raise InputError(
            f"--isolate runs each layer of B as a model of its own, and {options.b_runtime} runs whole .onnx files"
        )
    if _is_empty(b.model) and not (isinstance(a, ModelSide) and _is_empty(a.model)):
        raise InputError(f"{b.label} has no layers but inputs and results: there is nothing to compare")


def _is_empty(model: Model) -> bool:
    return all(node.type in ("Parameter", "Result") for node in model.nodes)


def _raise_nothing(evidence: Evidence, rows: Rows) -> NoReturn:
    """Raise the reason for a comparison without rows."""
    error = next(iter(evidence.errors), None)
    if isinstance(error, NodeError) and evidence.options.shapes:
        raise refused(evidence.options.shapes, error)
    if error is not None:
        raise error
    reasons = "; ".join(dict.fromkeys(one.reason for one in rows.uncompared)) or "they compute none"
    names = f"{evidence.a.label} and {evidence.b.label}"
    raise InputError(f"{names} have no tensor in common that can be compared ({reasons})")
