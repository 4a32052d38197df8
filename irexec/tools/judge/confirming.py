"""Accusations are confirmed before they are made, and acquittals by a wide interval are none.

A runtime may keep an inner tensor in a higher precision than it returns. It may fuse layers although each of them is
observed: the observed tensors then are computed beside the fused ones. The layer after them reads other values than
were observed. Therefore layers outside of their intervals run once more, alone and with the observed inputs, which then
are exact; if they are inside, so do the layers before them together with them. What is outside then is confirmed.

A tensor that is not outside alone, or cannot be run alone, is judged with ever more of the layers before it, from
observed tensors with the error of a few roundings. An interval acquits it that is narrow beside the spread of the
tensor. Where only wide ones contain it, the exact results of all these regions decide: they are what right
implementations give from tensors that the runtime has at different depths, and differ by the rounding of this runtime.
A tensor that is far from all of them, beside their own differences, is accused; else it is unconfirmed.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from irexec.analysis.portability.integers import IN_F32
from irexec.bounds import Arithmetic, Interval, Unbounded
from irexec.bounds.interval import floats
from irexec.ir.graph import Value
from irexec.ir.order import readers
from irexec.schema.shape_rules import MOVES
from irexec.tools.arrays.agreement import Tolerance, agreement_of
from irexec.tools.compare.options import RTOL
from irexec.tools.judge.evidence import AT_EDGES, Beside, Evidence
from irexec.tools.judge.judgement import JudgedLayer
from irexec.tools.judge.opponent import Tensors

_RUNS = 3
"""Number of runs alone: the layers, with the layers before them, and once more."""
_WIDTHS = (0, 1, 2, 3, 5, 8, 12)
"""Numbers of layers in front of a layer that are judged together with it."""
_NEAR = 3
"""Regions of up to this number of layers in front have to exclude a tensor that jumps farther away may explain."""
_TRIED = 64
"""Number of tensors outside of their intervals for which this is done."""
_FAR, _NEAR_READING = 8.0, 2.0
"""Distance of a wrong tensor from the exact results, beside the distances of these from each other; the smaller one
where it is known how the runtime reads its weights."""

_IN_32_BITS, _ZERO_POINT = "IR987", "IR1001"
_MOVES_OF_ENDS = frozenset({"Concat", "Reshape", "Squeeze", "Unsqueeze"})
_COARSE = ("f16", "bf16")
"""Arithmetics whose recorded tensors are judged beside errors at random."""
_ERRORS, _DEVIATIONS, _CELLS = 8, 6.0, 32
"""Number of runs with errors, standard deviations that are too many, and different numbers that a mean needs."""
_ROUNDED_ONCE = frozenset({
    "Add", "Subtract", "Multiply", "MatMul", "Convolution", "GroupConvolution", "ConvolutionBackpropData",
    "GroupConvolutionBackpropData", "Relu", "PRelu", "Clamp", "Maximum", "Minimum", "MaxPool", *MOVES,
})  # fmt: skip
"""Layers without inner steps, whose errors could be common to all elements."""
_SLACK = 8.0
"""Units of roundoff that inner steps of other layers may have in common."""


def judged(evidence: Evidence, given: Tensors, values: Sequence[Value]) -> list[JudgedLayer]:
    """The judgements of values, in their order; ``given``: observed tensors and inputs."""
    weighed = {value: _weighed(evidence, evidence.beside(value, given, given[value]), given) for value in values}
    found = {value: one for value, (_, one) in weighed.items()}
    suspects = [value for value, one in found.items() if one.state == "outside"]
    for value in suspects[_TRIED:]:
        found[value] = replace(found[value], state="unconfirmed", reason="too many others were tried before it")
    suspects = suspects[:_TRIED]
    confirmed, was_run = _alone(evidence, given, suspects)
    found |= confirmed
    for value in suspects:
        if value not in confirmed:
            found[value] = _together(evidence, weighed[value][0], given, value in was_run, confirmed)
    if evidence.opponent.runtime is None and evidence.arithmetic.name in _COARSE:
        for value, (own, _) in weighed.items():
            found[value] = _beside_errors(evidence, own, given, found[value])
    return [_read_as_known(evidence, given, value, one) for value, one in found.items()]


def differ(one: np.ndarray, other: np.ndarray, arithmetic_name: str) -> bool:
    """Whether two arrays differ visibly for tensors of this arithmetic, or of the type in which they are stored."""
    names = {arithmetic_name.partition("-")[0], *("f16" for array in (one, other) if array.dtype == np.float16)}
    rtol = max(RTOL.get(name, RTOL["f32"]) for name in names)
    return not agreement_of("", one, other, Tolerance(rtol=rtol, atol=rtol, scaled=True)).agrees


def _weighed(evidence: Evidence, own: Beside, given: Tensors) -> tuple[Beside, JudgedLayer]:
    """A tensor beside the narrowest interval of its layer, and its judgement: a wide one acquits what is near alone."""
    one = own.judged()
    if one.state != "inside" or not one.region or own.is_narrow(np.ones(own.actual.shape, bool)):
        return own, one
    assert not isinstance(own.bound, Unbounded)
    if not differ(own.bound.exact, own.actual, own.arithmetic.name) or own.bound.admits is not None:
        return own, one
    regions = _Regions(own)
    if (part := regions.by_reading(evidence, given)) is not None:
        return part, part.judged()
    if regions.readings and regions.is_far:
        return regions.readings[0], replace(regions.readings[0].judged(), region=one.region)
    reason = f"the interval of {len(one.region) + 1} layers is as wide as the values"
    return own, replace(one, state="unconfirmed", reason=reason, visible=True)


def _alone(
    evidence: Evidence, given: Tensors, suspects: Sequence[Value]
) -> tuple[dict[Value, JudgedLayer], set[Value]]:
    """Judgements of tensors that are outside when their layers run alone, and the tensors that could be run."""
    confirmed: dict[Value, JudgedLayer] = {}
    was_run: set[Value] = set()
    left, inside_of = list(suspects), dict(given)
    for _ in range(_RUNS):
        made = evidence.alone(left, inside_of)
        was_run |= made.keys()
        for value, array in made.items():
            if (one := evidence.beside(value, inside_of, array).judged()).state == "outside":
                confirmed[value] = replace(one, alone=True)
        left = [value for value in left if value in made and value not in confirmed]
        earlier = evidence.earlier(left, inside_of)
        if earlier is None:
            break
        inside_of, guilty = earlier, {value.node for value in confirmed}
        left = [value for value in left if guilty.isdisjoint(evidence.region(value, inside_of))]
    return confirmed, was_run


def _beside_errors(evidence: Evidence, own: Beside, given: Tensors, one: JudgedLayer) -> JudgedLayer:
    """The judgement of a recorded tensor of 16 bits that its intervals acquit, beside errors at random.

    An interval adds up the largest errors of all terms, and errors of both signs cancel out. The tensor is judged by
    the standard deviation of each element, and of what all elements have in common: a factor and an offset.
    """
    bound, actual = own.bound, own.actual
    if isinstance(bound, Unbounded) or bound.admits is not None or one.state not in ("inside", "unconfirmed"):
        return one
    if bound.exact.dtype.kind != "f" or actual.dtype.kind != "f" or bound.exact.shape != actual.shape:
        return one
    is_far = bool(own.outside.any()) or (bool(own.nodes[1:]) and not own.is_narrow(np.ones(actual.shape, bool)))
    slack, jumps = 0.0 if own.value.node.type in _ROUNDED_ONCE else _SLACK, False
    excess = _in_common(bound.exact, actual, [], evidence.arithmetic, slack)
    if not (is_far or excess):
        return one
    for width, sources in _wider(evidence, own.value, given):
        part = evidence.beside(own.value, sources, actual)
        runs = evidence.moved(own.value, sources, _ERRORS) if width <= _NEAR else []
        if isinstance(part.bound, Unbounded) or part.bound.exact.shape != actual.shape or not runs:
            return one
        jumps = jumps or part.has_edges
        far = _are_far(bound, part.bound.exact, actual, runs, evidence.arithmetic.unit)
        is_far = is_far and int(np.count_nonzero(far)) > (AT_EDGES * actual.size if part.has_edges else 0)
        excess = min(excess, excess and _in_common(part.bound.exact, actual, runs, evidence.arithmetic, slack))
        if not (is_far or excess):
            is_sure = one.state == "inside" or one.visible
            return one if is_sure else JudgedLayer(one.layer, "inside", elements=one.elements, region=one.region)
        if width == _NEAR:
            break
    if (is_far or (excess > 1 and not slack)) and own.outside.any() and not jumps:
        return own.judged()
    common = "their errors have a factor or an offset in common, which rounding does not make"
    return _unsure(one, "errors at random do not bring them so far from exact results" if is_far else common)


def _are_far(
    own: Interval, exact: np.ndarray, actual: np.ndarray, runs: Sequence[np.ndarray], unit: float
) -> np.ndarray:  # fmt: skip
    """Mask of elements farther from an exact result, beyond the rounding of their own layer, than errors at random."""
    errors = np.stack(runs) - exact
    squares = np.mean(errors * errors, 0)
    deviation = np.sqrt(np.maximum(squares, np.mean(squares) / 4))
    with np.errstate(invalid="ignore"):
        # Numbers that are cut, and not rounded, have errors of one sign, which add up to a factor.
        distance = np.abs(actual.astype(np.float64) - exact) - own.radius - 2 * unit * np.abs(exact)
        return np.asarray(distance > _DEVIATIONS * deviation)


def _in_common(
    exact: np.ndarray, actual: np.ndarray, runs: Sequence[np.ndarray], arithmetic: Arithmetic, slack: float
) -> float:  # fmt: skip
    """The factor or the offset that all errors of a tensor have in common, in units of roundoff; 0 where rounding or
    cutting may make it.

    ``runs`` are exact results with errors at random in front of the layer. The arithmetic rounds the result once, and
    inner steps of the layer may add ``slack`` units of roundoff to both.
    """
    known = np.isfinite(exact) & np.isfinite(actual) & (np.abs(exact) >= arithmetic.smallest)
    unit, values = arithmetic.unit, floats(exact)[known]
    # Elements that are rounded to the same number have one error in common.
    cells = np.unique(arithmetic.nearest(values), return_inverse=True)[1].reshape(-1)
    if cells.max(initial=-1) + 1 < _CELLS:
        return 0.0
    weights = np.linalg.pinv(np.stack([values, np.ones(values.size)], 1))
    factor, offset = weights @ (floats(actual)[known] - values)
    rounding = [np.bincount(cells, one * np.abs(values) * unit) for one in weights]
    squares = np.array([np.sum(one * one) / 3 for one in rounding])
    if runs:
        squares += np.mean(np.stack([weights @ (floats(one)[known] - values) for one in runs]) ** 2, 0)
    # Products of numbers of bf16 that were cut are up to two units smaller; of finer ones one unit larger.
    excess = max(factor - unit, -2 * unit - factor, 0.0) if arithmetic.name == "bf16" else abs(factor)
    largest = float(np.max(np.abs(values)))
    common = np.array([excess - slack * unit, abs(offset) - slack * unit * largest])
    return float(np.max(common / [unit, unit * largest], where=common > _DEVIATIONS * np.sqrt(squares), initial=0.0))


@dataclass
class _Regions:
    """A tensor beside the intervals of more and more layers together.

    Attributes:
        near: from its own inputs.
        parts: of wider regions.
        readings: of readings of weights, see Evidence.weights.
        wide: numbers of layers in front, of the regions that contain the tensor and are too wide to acquit it.
        width: the largest number of layers in front.
        stopped: the reason why a region has no bound; "" if all have one.
    """

    near: Beside
    parts: list[Beside] = field(default_factory=list)
    readings: list[Beside] = field(default_factory=list)
    wide: list[int] = field(default_factory=list)
    width: int = 0
    stopped: str = ""

    def by_reading(
        self, evidence: Evidence, sources: Tensors, mask: np.ndarray | None = None, by_edges: bool = True
    ) -> Beside | None:
        """The reading that acquits the tensor: inner tensors of 16 bits that fused layers do not round, or weights.

        Other readings of weights are kept.
        """
        own, element = self.near, np.ones(self.near.actual.shape, bool) if mask is None else mask
        if any(evidence.is_half(one) for node in evidence.region(own.value, sources) for one in node.outputs):
            part = evidence.beside(own.value, sources, own.actual, rough=mask is not None, finer=True)
            if not part.outside.any() and part.is_narrow(element, by_edges):
                return part
        for weights in evidence.weights(own.value, sources):
            part = evidence.beside(own.value, {**sources, **weights}, own.actual, rough=mask is not None)
            if not isinstance(part.bound, Unbounded):
                if not part.outside.any() and part.is_narrow(element, by_edges):
                    return part
                self.readings.append(part)
        return None

    @property
    def _bounds(self) -> list[Interval]:
        return [one.bound for one in (self.near, *self.parts, *self.readings) if not isinstance(one.bound, Unbounded)]

    @property
    def distance(self) -> float:
        """The distance of the tensor from the nearest exact result."""
        return min(_distance(self.near.actual, one.exact) for one in self._bounds)

    @property
    def limit(self) -> float:
        """The largest distance that rounding explains, by the distances of the exact results from each other."""
        radii = [one.radius[np.isfinite(one.radius)].max(initial=0) for one in self._bounds]
        exact = [one.exact for one in self._bounds]
        # A reading of weights that holds for most elements holds for all.
        is_known = any(np.count_nonzero(one.outside) <= one.outside.size / 4 for one in self.readings)
        times = _NEAR_READING if is_known else _FAR
        return times * max(_distance(exact[0], one) for one in exact) + float(min(radii))

    @property
    def is_far(self) -> bool:
        """Whether the tensor is farther from all exact results than rounding explains."""
        return self.distance > self.limit

    def differs(self, name: str) -> bool:
        """Whether the tensor differs visibly from every exact result."""
        return all(differ(one.exact, self.near.actual, name) for one in self._bounds)


def _together(
    evidence: Evidence, own: Beside, given: Tensors, was_run: bool, confirmed: Container[Value]
) -> JudgedLayer:
    """The judgement of a tensor outside of its own interval, with more and more of the layers before it.

    A region with a layer that is wrong for certain says nothing: its fault shows in what follows it.
    """
    one, actual = own.judged(), own.actual
    near = evidence.beside(own.value, given, actual, rough=True)
    if isinstance(near.bound, Unbounded) or near.bound.exact.shape != actual.shape:
        return _unsure(one, near.bound.reason) if isinstance(near.bound, Unbounded) else one
    regions = _Regions(near)
    for width, sources in _wider(evidence, own.value, given):
        part = evidence.beside(own.value, sources, actual, rough=True) if width else near
        if isinstance(part.bound, Unbounded):
            regions.stopped = part.bound.reason
            break
        if guilty := next((one for one in part.nodes if any(value in confirmed for value in one.outputs)), None):
            regions.stopped = f"{guilty.name!r} in front of it is wrong"
            break
        regions.width = width
        if width:
            regions.parts.append(part)
        if not part.outside.any():
            if part.is_narrow(own.outside, by_edges=width <= _NEAR):
                return part.judged()
            before = len(regions.readings)
            if (read := regions.by_reading(evidence, sources, own.outside, width <= _NEAR)) is not None:
                return read.judged()
            readings = regions.readings[before:]
            if readings and width:
                # The weights are read in the way that gives what follows from the tensors next to this one.
                del regions.readings[before:]
                regions.parts[-1] = min(readings, key=lambda each: _distance(_exact(near), _exact(each)))
            # The interval may be wide by its weights alone: each of their readings is narrow, and none has the tensor.
            if not readings or not all(each.outside.any() and each.is_narrow(own.outside) for each in readings):
                regions.wide.append(width)
    return _decided(regions, one, own, was_run)


def _decided(regions: _Regions, one: JudgedLayer, own: Beside, was_run: bool) -> JudgedLayer:
    """The judgement where no narrow interval contains the tensor."""
    name = own.arithmetic.name
    if not regions.width and (was_run or regions.stopped):
        text = regions.stopped or "it is inside when it runs alone with the observed inputs"
        return _unsure(one, text, regions.differs(name))
    if not regions.wide and not regions.stopped:
        return one
    jumps = (regions.near, *regions.parts)[-1].has_edges
    excluded = min(regions.wide, default=regions.width)
    if regions.is_far and (not jumps or excluded > _NEAR):
        return one
    if not regions.is_far and regions.limit <= regions.near.limit:
        return JudgedLayer(one.layer, "inside", elements=one.elements, region=one.region)
    layers = f"{regions.wide[0] + 1} layers" if regions.wide else ""
    text = regions.stopped or f"the interval of {layers} that contains it is as wide as the values"
    return _unsure(one, text, regions.differs(name))


def _unsure(one: JudgedLayer, reason: str, visible: bool = True) -> JudgedLayer:
    return replace(one, state="unconfirmed", reason=reason, visible=visible)


def _exact(one: Beside) -> np.ndarray:
    return np.full(one.actual.shape, np.nan) if isinstance(one.bound, Unbounded) else one.bound.exact


def _distance(a: np.ndarray, b: np.ndarray) -> float:
    """The largest difference of two elements; infinite where only one of them is finite, or the shapes differ."""
    if a.shape != b.shape:
        return np.inf
    with np.errstate(invalid="ignore"):
        one, other = a.astype(np.float64), b.astype(np.float64)
        found = np.where((one == other) | (np.isnan(one) & np.isnan(other)), 0.0, np.abs(one - other))
    return float(np.where(np.isnan(found), np.inf, found).max(initial=0))


def _wider(evidence: Evidence, value: Value, given: Tensors) -> Iterator[tuple[int, Tensors]]:
    sources: Tensors | None = given
    for width in range(_WIDTHS[-1] + 1):
        sources = sources if not width or sources is None else evidence.earlier([value], sources)
        if sources is None:
            return
        if width in _WIDTHS:
            yield width, sources


def _read_as_known(evidence: Evidence, given: Tensors, value: Value, one: JudgedLayer) -> JudgedLayer:
    """The judgement of a tensor as OpenVINO is known to read its layers: inside of that interval it is known."""
    if one.state not in ("outside", "unconfirmed") and not _differs_unbounded(evidence, given, value, one):
        return one
    if evidence.opponent.is_openvino and _is_end_in_32_bits(evidence, value, given):
        return JudgedLayer(one.layer, "inside", elements=one.elements, region=one.region)
    given = _without_levels(evidence, value, given)
    nodes = evidence.region(value, given)
    codes = tuple(dict.fromkeys(code for node in nodes for code in evidence.readings.get(node, ())))
    if evidence.opponent.is_openvino and _IN_32_BITS not in codes and given[value].dtype.kind in "iu":
        bound = evidence.bound(value, given)[0]
        wide = [given[source] for source in readers(nodes) if source in given]
        wide += [] if isinstance(bound, Unbounded) else [bound.exact]
        integers = [array for array in wide if array.dtype.kind in "iu"]
        in_f32 = value.node.type in IN_F32 and any((one != one.astype(np.float32)).any() for one in integers)
        if in_f32 or any(one.itemsize == 8 and (one != one.astype(np.int32)).any() for one in integers):
            codes = (*codes, _IN_32_BITS)
    if not codes:
        return one
    for rough in (False, True):
        part = evidence.beside(value, given, given[value], rough=rough, known=True)
        if not isinstance(part.bound, Unbounded) and not part.outside.any():
            return replace(one, state="known", codes=codes)
    return replace(one, codes=codes)


def _differs_unbounded(evidence: Evidence, given: Tensors, value: Value, one: JudgedLayer) -> bool:
    """Whether a tensor without a bound differs from irexec's with equal inputs; asked of OpenVINO's alone."""
    if one.state != "no bound" or not evidence.opponent.is_openvino:
        return False
    own = evidence.alone([value], given, "irexec").get(value)
    return own is not None and differ(own, given[value], evidence.arithmetic.name)


def _without_levels(evidence: Evidence, value: Value, given: Tensors) -> Tensors:
    """The observed tensors without those that a layer of the region reads in another way than they are observed."""
    read = readers(evidence.region(value, given))
    moved = {source for source in read if _ZERO_POINT in evidence.readings.get(source.node, ())}
    return {source: array for source, array in given.items() if source not in moved} if moved else given


def _is_end_in_32_bits(evidence: Evidence, value: Value, given: Tensors) -> bool:
    """Whether integers are the exact ones, saturated to 32 bits, and mean the same to all readers: ends of slices."""
    bound, actual = evidence.bound(value, given)[0], given[value]
    if isinstance(bound, Unbounded) or actual.dtype.kind != "i" or bound.exact.shape != actual.shape:
        return False
    limits = np.iinfo(np.int32)
    return bool((actual == np.clip(bound.exact, limits.min, limits.max)).all()) and _only_cuts(evidence, value)


def _only_cuts(evidence: Evidence, value: Value) -> bool:
    """Whether a value is read as the begin or end of slices alone, also behind layers that move its elements."""
    readers = [(node, i) for node in evidence.side.order for i, read in enumerate(node.inputs) if read is value]
    return bool(readers) and all(
        (node.type in ("Slice", "StridedSlice") and i in (1, 2))
        or (node.type in _MOVES_OF_ENDS and all(_only_cuts(evidence, output) for output in node.outputs))
        for node, i in readers
    )  # fmt: skip
