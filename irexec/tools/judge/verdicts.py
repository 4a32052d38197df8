"""The verdict about a step: the first of a list of tests that finds something.

Each test is a function of a step. The order is that of certainty: a layer outside of its interval before everything
else, an explanation of results that differ before the admission that there is none. Where no layer is at fault, the
explanation is amplified rounding, values on an edge between two levels, or NaN and infinities of the model itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from irexec.bounds import Interval
from irexec.bounds.readings import READINGS
from irexec.ir.constants import constant_value
from irexec.ir.graph import Node, Value
from irexec.ir.order import readers
from irexec.messages import counted
from irexec.tools.compare.blame import IN_16_BITS, products_of_bytes
from irexec.tools.compare.layers import layer as compared_layer
from irexec.tools.compare.layers import levels_apart
from irexec.tools.compare.options import RTOL
from irexec.tools.engines.runtimes import runtime_kind
from irexec.tools.judge.confirming import differ
from irexec.tools.judge.evidence import Evidence
from irexec.tools.judge.judgement import JudgedLayer, Judgement, Severity, Verdict
from irexec.tools.judge.opponent import Runs, Tensors
from irexec.tools.judge.step import Case, Step

_WHOLE = 2.0**53
"""Largest whole number that is written with all digits."""
_HIDDEN, _TINY = 16.0, 1e-3
"""Units of roundoff by which finer inner tensors may move a single value, and a size that is not worth a word."""
_AMPLIFIES = 2.0
"""Smallest condition of a layer that amplifies."""
_ENOUGH = 4.0
"""Times that the measured effect of rounding may be smaller than the difference that it explains."""
_LEVELS = "FakeQuantize"
_PERTURBED = 2
_STEP = 2.0**-12
"""Relative perturbation: large beside the rounding of f32, and small enough for a layer to be nearly linear."""


@dataclass(frozen=True)
class Found:
    """A verdict with its sentence and the layers that it names."""

    verdict: Verdict
    sentence: str
    at: Sequence[JudgedLayer] = ()


def case_of_step(runs: Runs, index: int) -> Case:
    """The judgement of a step, together with the model and its state before the step."""
    step = Step(runs, index)
    found = _judgement(step)
    alone = replace(runs.options, shapes=None, weights=None, steps=1, load_state=None)
    before = runs.seen[index - 1] if index else {}
    state = {value: before[source] for value, source in runs.variables.items() if source in before}
    inputs = {port.name: step.seen[port.node.outputs[0]] for port in runs.model.inputs}
    return Case(runs.side, inputs, step.seen, alone, found, runs.opponent.runtime is None, state, step)


def _judgement(step: Step) -> Judgement:
    runs, opponent = step.runs, step.runs.opponent
    found = next(one for test in TESTS if (one := test(step)) is not None)
    version = "" if opponent.runtime is None else opponent.runtime.version
    severity = _severity(step, found)
    small = "small " if severity == "minor" else ""
    return Judgement(
        runs.side.label, runs.options.runtime, version, step.arithmetic,
        found.verdict, f"{small}{found.sentence}", tuple(found.at), step.judged,
        tuple(value.name for value in step.differing), (*_notes(step), *_of_integer_kernels(step, found)),
        step=step.index + 1, steps=len(runs.steps), severity=severity, hidden=_hidden(step),
    )  # fmt: skip


def _severity(step: Step, found: Found) -> Severity:
    """Whether a bug changes a value visibly: one of the accused layers, or one of the results."""
    if found.verdict not in ("bug", "fusion"):
        return ""
    visible = RTOL.get(step.arithmetic.partition("-")[0], RTOL["f32"])
    is_small = all(one.relative is not None and one.relative < visible for one in found.at)
    return "minor" if is_small and not step.differing else "major"


def _hidden(step: Step) -> float:
    """The size below which rounding may hide a fault of a single value; 0 where it is below a thousandth."""
    size = _HIDDEN * step.evidence.arithmetic.unit
    return size if size > _TINY else 0.0


def _notes(step: Step) -> Iterator[str]:
    failed, opponent = len(step.runs.opponent.failures), step.runs.opponent
    yield from step.runs.layouts
    if opponent.runtime is not None and opponent.runtime.unused:
        yield opponent.runtime.unused
    if "fused" in vars(step) and step.changed and not step.fused:
        yield "observed tensors change the results, and no bound says that either are wrong"
    if failed:
        yield f"{counted(failed, 'tensor')} cannot be observed, and are judged with the layers after them"
    if opponent.stored is not None and opponent.stored.name == step.arithmetic and not step.runs.options.arithmetic:
        assumed = f"all floating-point tensors are stored in {step.arithmetic}: this arithmetic is assumed"
        yield f"{assumed}, --arithmetic states another one"


def _of_integer_kernels(step: Step, found: Found) -> Iterator[str]:
    """Known reasons of values outside where a runtime computes in integers: products of bytes that ONNX Runtime and the
    low precision of OpenVINO saturate on some processors, and ONNX Runtime's QLinearSoftmax."""
    options, model = step.runs.options, step.runs.side.model
    is_low = step.runs.opponent.is_openvino and (options.properties or {}).get("LP_TRANSFORMS_MODE") == "YES"
    is_onnxruntime = step.runs.opponent.runtime is not None and runtime_kind(options.runtime) == "onnxruntime"
    if not is_low and not is_onnxruntime:
        return
    named = {name for one in found.at if one.state == "outside" for name in (one.layer.name, *one.region)}
    nodes = [node for node in model.nodes if node.name in named]
    if any(products_of_bytes(model, nodes)):
        yield f"{'ONNX Runtime' if is_onnxruntime else 'the CPU plugin'} {IN_16_BITS}; weights of 7 bits avoid it"
    if is_onnxruntime and {"Softmax", "Round", "Convert"} <= {node.type for node in nodes}:
        yield "ONNX Runtime computes a Softmax between quantised tensors by a table of integers, and may be a level off"


def _outside(step: Step) -> Found | None:
    """A layer outside of its interval."""
    if not step.outside:
        step.require_results()
        return None
    return Found("bug", f"bug of the runtime: {described(step.outside[0], step.arithmetic)}", step.outside)


def _fused(step: Step) -> Found | None:
    """Layers outside of their intervals in runs that observe less."""
    if not step.fused:
        return None
    text = described(step.fused[0], step.arithmetic)
    return Found("fusion", f"bug of the runtime, only while inner tensors are not observed: {text}", step.fused)


def _freed(step: Step) -> Found | None:
    """Layers that differ from irexec's with equal inputs where they may be anything."""
    if not step.differing:
        return None
    free = [one for one in step.judged if one.free]
    alone = step.in_irexec(free) if free else {}
    found = [one for one in free if _differs_freely(step, one, alone)] or _freed_unobserved(step)
    if not found:
        return None
    text = f"{found[0].free:,} of {counted(found[0].elements, 'value')} of {found[0].layer}"
    return Found("open", f"left open: {text}, which NaN, infinity or overflow reaches, may be anything", found)


def _differs_freely(step: Step, one: JudgedLayer, own: Tensors) -> bool:
    """Whether a layer differs visibly from irexec's in the elements that may be anything."""
    value = next((value for value in own if value.name == one.layer.tensor), None)
    bound = None if value is None else step.evidence.bound(value, step.seen)[0]
    if value is None or not isinstance(bound, Interval):
        return False
    mask = bound.is_anything
    return differ(own[value][mask], step.seen[value][mask], step.arithmetic)


def _freed_unobserved(step: Step) -> list[JudgedLayer]:
    """Results that differ only while inner tensors are not observed, where NaN or infinity reaches them."""
    found = []
    for value in step.differing:
        ours, theirs = step.ours[value], step.plain[value]
        if step.differs(value, step.seen, step.ours) or ours.shape != theirs.shape or ours.dtype.kind != "f":
            continue
        given = {source: array for source, array in step.plain.items() if source is not value}
        beside = step.evidence.beside(value, given, theirs)
        if isinstance(beside.bound, Interval):
            # Intervals that merely grew are not a reason.
            mask = beside.bound.is_anything & ~(np.isfinite(ours) & np.isfinite(theirs))
            if differ(theirs[mask], ours[mask], step.arithmetic):
                found.append(beside.judged())
    return found


def _of_the_model(step: Step) -> Found | None:
    """NaN or infinities of the results that irexec has as well."""
    bad = [value for value in step.runs.results if value in step.plain and not _is_finite(step.plain[value])]
    if not bad or all(_is_finite(step.ours[value]) for value in bad if value in step.ours):
        return None
    first = _first_not_finite(step.runs.side.order, step.ours)
    if first is None:
        return None
    kind = "constant" if first.node.constant is not None else f"{first.node.type} of finite inputs, layer"
    where = f"{kind} {first.node.id} {first.node.name!r}"
    if first.node.type == "Parameter":
        where = f"the input {first.name!r}"
    return Found("model", f"the model itself: NaN or infinity comes from {where}")


def _known(step: Step) -> Found | None:
    """Layers that are as OpenVINO is known to compute them."""
    known = [one for one in step.judged if one.state == "known"]
    if not known:
        return None
    text = f"OpenVINO is known to differ, {', '.join(known[0].codes)}, at {known[0].layer}"
    return Found("open", f"left open: {text}", known)


def _unconfirmed(step: Step) -> Found | None:
    """A tensor that differs visibly from irexec's with the same inputs, without an explanation."""
    found = [one for one in step.judged if one.state == "unconfirmed" and one.visible]
    if not found:
        return None
    first = next(value for value in step.seen if value.name == found[0].layer.tensor)
    return Found("unexplained", f"not explained: {_between(step, first)}, values differ; {found[0].reason}", found)


def _agreeing(step: Step) -> Found | None:
    """No result that differs visibly."""
    if step.differing:
        return None
    alone = [value for value in step.runs.results if value in step.plain and value not in step.ours]
    if alone:
        text = f"no bound: irexec does not run {compared_layer(alone[0])} with these inputs, and the runtime does"
        return Found("no-bound", text, [one for one in step.judged if one.layer.tensor == alone[0].name])
    inside, count = sum(one.state == "inside" for one in step.judged), len(step.judged)
    rest = f", {count - inside} without a bound" if count > inside else ""
    text = f"agrees: {inside} of {counted(count, 'tensor')} inside the intervals of {step.arithmetic}{rest}"
    if hidden := _hidden(step):
        text += f"; a value that is off by less than {hidden:.1%} of the largest of its tensor cannot be seen"
    return Found("agrees", text)


def _unbounded(step: Step) -> Found | None:
    """Layers without a bound that differ from irexec's with equal inputs, or where a bound includes an alternative."""
    unknown = [
        one for one in step.judged if one.state in ("no bound", "unconfirmed")
        and not (step.index and one.layer.type == "ReadValue")
    ]  # fmt: skip
    opened = [one for one in step.judged if one.codes]
    alone = step.in_irexec([*unknown, *opened])
    apart = {value.name for value in alone if step.differs(value, alone, step.seen)}
    if suspects := [one for one in unknown if one.layer.tensor in apart]:
        first = suspects[0]
        text = f"no bound: {first.layer} differs from irexec with equal inputs, and {first.reason}"
        return Found("no-bound", text, suspects)
    if opened := [one for one in opened if one.layer.tensor in apart]:
        codes = ", ".join(opened[0].codes)
        return Found("open", f"left open by the specification: {codes}, at {opened[0].layer}", opened)
    return None


def _edges(step: Step) -> Found | None:
    """Values on an edge between two levels of a FakeQuantize: runtimes may choose different ones, and all are right.

    Two measurements say whether that explains results. With the runtime's own levels in place of irexec's, the results
    are the same; or, where its levels cannot be observed, errors of one rounding at random move results as far.
    """
    before = step.before(step.differing)
    levels = [value for value in step.runs.values if value.node.type == _LEVELS and value.node in before]
    if not levels:
        return None
    observed = [value for value in levels if value in step.seen]
    total = sum(step.ours[value].size for value in levels if value in step.ours)
    of_all = f"{counted(total, 'value')} of {counted(len(levels), f'{_LEVELS} layer')}"
    if len(observed) == len(levels) and not step.changed:
        count = sum(_moved(value, step.seen[value], step.ours[value]) for value in observed)
        inputs = {value: array for value, array in step.ours.items() if value.node.type == "Parameter"}
        made = step.evidence.alone(step.differing, {**inputs, **{v: step.seen[v] for v in observed}}, "irexec")
        explained = all(value in made and not step.differs(value, made, step.plain) for value in step.differing)
        text = f"{count:,} of {of_all} on another level, where either is right"
        text = f"precision: {text}; with these levels irexec gives the same results"
        return Found("precision", text) if count and explained else None
    count = max(sum(_moved(v, run[v], step.ours[v]) for v in levels if v in run) for run in step.noisy)
    effect = _effect_of_noise(step) if count else None
    if effect is None:
        return None
    text = f"precision: errors of one rounding bring {count:,} of {of_all} to another level, where either is right"
    return Found("precision", f"{text}, and move the results as far ({effect})")


def _moved(value: Value, one: np.ndarray, other: np.ndarray) -> int:
    """The number of elements on another level; where no constants say the steps, they are parts of the range."""
    apart = levels_apart(value, one, other)
    if apart is None and one.shape == other.shape:
        apart = np.rint(np.abs(one.astype(np.float64) - other) * 256 / (np.ptp(other) or 1))
    return 0 if apart is None else int(np.count_nonzero(apart))


def _effect_of_noise(step: Step) -> str | None:
    """How far errors at random and the runtime move the result that differs most, if they move all about as far."""
    sizes = [
        (_rms(step.plain[value], step.ours[value]), max(_rms(run[value], step.ours[value]) for run in step.noisy))
        for value in step.differing
    ]
    if not all(own <= _ENOUGH * made for own, made in sizes):
        return None
    own, made = (f"{size:.1e}" if np.isfinite(size) else "another shape" for size in max(sizes))
    return f"{made}, and {own} in the runtime"


def _rms(one: np.ndarray, other: np.ndarray) -> float:
    if one.shape != other.shape or one.dtype.kind not in "fiub":
        return np.inf
    with np.errstate(invalid="ignore"):
        return float(np.sqrt(np.nanmean((one.astype(np.float64) - other) ** 2))) if one.size else 0.0


def _amplified(step: Step) -> Found | None:
    """A layer that amplifies rounding, and observed results that differ."""
    if all(value in step.changed for value in step.differing):
        return None
    if (itself := _within_itself(step)) is not None:
        return itself
    found = _amplification(step.runs.side.order, step.ours, step.seen, step.before(step.differing))
    if found is None:
        return None
    value, own, before, ratio = found
    estimated = _condition(step.evidence, value, step.seen)
    ratio = ratio if estimated is None else estimated
    if ratio < _AMPLIFIES:
        return None
    text = (
        f"precision: every layer within {step.arithmetic}; amplified by {compared_layer(value)}, whose inputs "
        f"differ by {before:.1e} and whose values by {own:.1e} (condition {ratio:.0e})"
    )
    return Found("precision", text, [one for one in step.judged if one.layer.tensor == value.name][:1])


def _within_itself(step: Step) -> Found | None:
    """A layer whose values differ visibly with equal inputs, and lie in an interval that has room for both."""
    inside = [one for one in step.judged if one.state == "inside" and not one.region]
    alone = step.in_irexec(inside)
    before = step.before(step.differing)
    apart = [value for value in alone if value.node in before and step.differs(value, alone, step.seen)]
    if not apart:
        return None
    first = apart[0]
    bound = step.evidence.bound(first, step.seen)[0]
    width = float(np.max(bound.radius, initial=0)) if isinstance(bound, Interval) else np.inf
    text = (
        f"precision: every layer within {step.arithmetic}; amplified by {compared_layer(first)}, whose values differ "
        f"with equal inputs, by up to {width:.1e} in right implementations"
    )
    return Found("precision", text, [one for one in inside if one.layer.tensor == first.name])


def _measured(step: Step) -> Found | None:
    """Results that differ as far as errors at random move them, where the observed tensors do not show the reason."""
    effect = _effect_of_noise(step)
    if effect is None:
        return None
    before = step.before(step.differing)
    found = _amplification(step.runs.side.order, step.ours, step.noisy[0], before)
    later = (value for node in step.runs.side.order if node in before for value in node.outputs)
    first = next((value for value in later if step.differs(value, step.noisy[0], step.ours)), step.differing[0])
    value, times = (first, "") if found is None else (found[0], f" ({found[3]:.2g} times)")
    text = (
        f"precision: every layer within {step.arithmetic}, and errors of one rounding move the results as far "
        f"({effect}); amplified most by {compared_layer(value)}{times}"
    )
    return Found("precision", text, [one for one in step.judged if one.layer.tensor == value.name][:1])


def _unexplained(step: Step) -> Found:
    """Results that differ visibly, and nothing that explains it."""
    return Found("unexplained", f"not explained: {_between(step, step.differing[0])}, values differ visibly")


def _between(step: Step, result: Value) -> str:
    """The last tensors in front of one that agree with irexec's, and the first that does not; known differences of
    OpenVINO between them."""
    nodes = step.before([result])
    before = (value for node in step.runs.side.order if node in nodes for value in node.outputs)
    first = next((value for value in before if step.differs(value, step.seen, step.ours)), result)
    others = {value: array for value, array in step.seen.items() if value is not first}
    region = step.evidence.region(first, others)
    sources = [value for node in region for value in node.inputs if value is not None and value in others]
    begin = " and ".join(dict.fromkeys(repr(value.name) for value in sources[:2])) or "the inputs"
    codes = dict.fromkeys(code for node in (first.node, *region) for code in step.runs.known.get(node, ()))
    also = f" (see also {', '.join(codes)})" if codes else ""
    return f"between {begin} and {compared_layer(first)}{also}"


TESTS: tuple[Callable[[Step], Found | None], ...] = (
    _outside, _fused, _freed, _of_the_model, _known, _unconfirmed, _agreeing, _unbounded, _edges, _amplified,
    _measured, _unexplained,
)  # fmt: skip


def described(one: JudgedLayer, arithmetic_name: str) -> str:
    """An accusation in one sentence."""
    codes = [(code, code in READINGS) for code in one.codes]
    known = "".join(f" ({code} does not explain it)" if is_read else f" (see also {code})" for code, is_read in codes)
    where = str(one.layer)
    if one.recorded not in ("", one.layer.name, one.layer.tensor):
        where = f"{one.recorded!r}, {where}"
    if one.value is None and one.reason:
        return f"{where}: {one.reason}{known}"
    why = one.reason or f"outside of {arithmetic_name}'s interval"
    values = f"{one.outside:,} of {one.elements:,} values {why}"
    position = f"[{', '.join(map(str, one.position))}]"
    low, high = _number(one.low), _number(one.high)
    worst = f"worst {_number(one.value)} at {position}, expected {low if low == high else f'{low} to {high}'}"
    return f"{where}: {values}; {worst}{known}"


def _number(value: float | None) -> str:
    """A number with nine digits; a whole one with all."""
    if value is None or not float(value).is_integer() or abs(value) > _WHOLE:
        return f"{value:.9g}"
    return str(int(value))


def _is_finite(array: np.ndarray) -> bool:
    """Whether an array has neither NaN nor infinities."""
    return array.dtype.kind not in "fc" or bool(np.isfinite(array).all())


def _first_not_finite(order: Sequence[Node], tensors: Tensors) -> Value | None:
    """The first tensor with NaN or infinities all of whose known inputs are finite; a Constant counts as well."""
    for node in order:
        for source in node.inputs:
            constant = None if source is None else source.node.constant
            if constant is not None and not _is_finite(constant_value(constant)):
                return source
        for value in node.outputs:
            if value in tensors and not _is_finite(tensors[value]):
                return value
    return None


def _amplification(order: Sequence[Node], ours: Tensors, theirs: Tensors, before: Iterable[Node]) -> tuple[
    Value, float, float, float
] | None:  # fmt: skip
    """The layer that enlarges the relative difference most among those before a result.

    Returns:
        Its tensor, the relative difference of it and of its inputs, and their ratio.
    """
    wanted, found = set(before), None
    for node in order:
        if node not in wanted:
            continue
        sources = [value for value in node.inputs if value is not None and value in ours and value in theirs]
        difference = max((_relative(ours[value], theirs[value]) for value in sources), default=0.0)
        for value in node.outputs:
            if value in ours and value in theirs and 0 < difference < math.inf:
                own = _relative(ours[value], theirs[value])
                if own < math.inf and (found is None or own / difference > found[3]):
                    found = value, own, difference, own / difference
    return found


def _condition(evidence: Evidence, value: Value, given: Tensors) -> float | None:
    """An estimate of the condition number of a layer, from two runs of irexec with perturbed inputs.

    Each element is moved up or down at random. The estimate is the largest ratio of the relative changes of the layer's
    tensor and of its inputs; None if the layer does not run alone.
    """
    exact = evidence.alone([value], given, "irexec").get(value)
    read = readers(evidence.region(value, given))
    moved = [source for source in read if source in given and given[source].dtype.kind == "f"]
    if exact is None or not moved:
        return None
    rng, found = np.random.default_rng(0), 0.0
    for _ in range(_PERTURBED):
        other = {one: given[one] * (1 + _STEP * rng.choice((-1, 1), given[one].shape)) for one in moved}
        cast = {one: array.astype(given[one].dtype) for one, array in other.items()}
        made = evidence.alone([value], {**given, **cast}, "irexec").get(value)
        found = max(found, math.inf if made is None else _relative(exact, made) / _STEP)
    return found if found < math.inf else None


def _relative(ours: np.ndarray, theirs: np.ndarray) -> float:
    """Root mean square of the difference divided by that of our tensor."""
    if ours.shape != theirs.shape or ours.dtype.kind not in "fiub":
        return math.inf
    a, b = ours.astype(np.float64), theirs.astype(np.float64)
    size = float(np.sqrt(np.mean(a * a))) if a.size else 0.0
    with np.errstate(invalid="ignore"):  # equal infinities have no difference that is a number
        difference = float(np.sqrt(np.mean((a - b) ** 2))) if a.size else 0.0
    return difference / size if size else (math.inf if difference else 0.0)
