"""One random model, judged: what OpenVINO reads, infers, saves and computes, against what irexec does with the very file."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov

import irexec
from irexec.analysis.shape_inference import infer_shapes
from irexec.errors import IrexecError, OpError
from irexec.ir.dims import ANY, Dim, PartialShape, high, low, shape_text, span
from irexec.ir.shape_text import parse_shape
from irexec.testing import Case
from irexec.testing.laws import assert_same, infer, kernel, read_only
from irexec.testing.random_cases import CaseGenerator
from irexec.testing.rows import COUNTED_BY_LENGTH, exact_facts
from tests.oracle import openvino_runner as openvino
from tests.oracle.explained import reason
from tests.support.one_operation import one_operation

AGREED, BOTH_REFUSE, THEY_REFUSE, CANNOT = "agreed", "refused by both", "refused by OpenVINO", "OpenVINO cannot"
EXPLAINED, DIFFERS = "explained", "differ"
KINDS = (AGREED, BOTH_REFUSE, THEY_REFUSE, CANNOT, EXPLAINED, DIFFERS)
Shapes = Mapping[int, PartialShape]


@dataclass(frozen=True)
class Verdict:
    """The outcome of a random case, with the reason of a difference."""

    kind: str
    why: str = ""


class Differs(Exception):
    """irexec and OpenVINO do not say the same."""


def judge(row: Case, gen: CaseGenerator, asking: Callable[[], None]) -> Verdict:
    """The verdict on a row; ``asking`` is called before OpenVINO, which may not come back."""
    try:
        return _judge(row, gen, asking)
    except Differs as error:
        known = reason(row, str(error))
        return Verdict(EXPLAINED, known) if known else Verdict(DIFFERS, f"{error}\n    {describe(row)}")


def _judge(row: Case, gen: CaseGenerator, asking: Callable[[], None]) -> Verdict:
    try:
        facts = infer(row, exact_facts(row))
        ours = kernel(row, read_only(row))
    except OpError as error:
        asking()
        return _refused(row, str(error))
    for fact, array in zip(facts, ours, strict=True):
        _hold(fact.admits(array), f"facts: {fact} does not admit the kernel's {array.dtype}{list(array.shape)}")
    forms = list(_forms(row, gen))
    asking()
    loaded = next((shapes for shapes in forms if _reads(row, shapes)), None)
    if loaded is None:
        return Verdict(THEY_REFUSE, _objection(row, {}))
    noted: list[str] = []
    results = _through_a_file(row, loaded, ours, noted)
    for loose in (_loosened(row, gen), _loosened(row, gen)):
        if _reads(row, loose):
            _same_values(_through_a_file(row, loose, ours, noted), results, row, "values where less is known")
    why = _compared(row, loaded, results)
    if noted:
        return Verdict(EXPLAINED, noted[0])
    return Verdict(CANNOT, why) if why else Verdict(AGREED)


def _hold(condition: bool, message: str) -> None:
    if not condition:
        raise Differs(message)


def _refused(row: Case, why: str) -> Verdict:
    """irexec refuses the row: so should OpenVINO, if not when it reads then when it runs."""
    objection = _objection(row, {})
    if not objection:
        for answer in _answers(row, {}, []):
            raise Differs(f"refuses: irexec says {why!r}, OpenVINO computes {_short(answer)}")
    return Verdict(BOTH_REFUSE, why)


def _forms(row: Case, gen: CaseGenerator) -> Iterator[Shapes]:
    """Which inputs are Parameters: any; or the first, as where attributes have become inputs; or none."""
    count = len(row.inputs)
    maximum = count - 1 if row.type in COUNTED_BY_LENGTH else count
    random_axes = gen.pick([0], range(maximum), [i for i in range(maximum) if gen.chance()])
    for chosen in (random_axes, range(min(count, 1)), ()):
        yield {i: row.inputs[i].array.shape for i in chosen if i < count}


def _loosened(row: Case, gen: CaseGenerator) -> Shapes:
    """Parameters of shapes of which little is known: the first input mostly, the others less often."""
    counted = row.type in COUNTED_BY_LENGTH
    chosen = [
        i
        for i in range(len(row.inputs))
        if gen.chance(0.25 if i else 0.9) and not (counted and i == len(row.inputs) - 1)
    ]
    return {i: _loose(row.inputs[i].array.shape, gen) for i in chosen}


def _loose(shape: tuple[int, ...], gen: CaseGenerator) -> PartialShape:
    if gen.chance(0.12):
        return None
    around = [span(max(size - gen.size(0, 2), 0), size + gen.size(0, 3)) for size in shape]
    return tuple(gen.pick(size, size, ANY, near, Dim(low(near))) for size, near in zip(shape, around, strict=True))


def _reads(row: Case, shapes: Shapes) -> bool:
    return not _objection(row, shapes)


def _objection(row: Case, shapes: Shapes) -> str:
    """Why OpenVINO does not read the model; nothing if it does."""
    try:
        openvino.model_of(one_operation(row, shapes).text)
    except RuntimeError as error:
        return str(error).strip().splitlines()[-1]
    return ""


def _through_a_file(row: Case, shapes: Shapes, ours: Sequence[np.ndarray], noted: list[str]) -> list[np.ndarray]:
    """Let OpenVINO save the model, read that file, compare what is inferred, and run it.

    Why facts differ, where that is known, is noted, so that values are compared all the same.
    """
    one = one_operation(row, shapes)
    theirs = openvino.model_of(one.text)
    form = _form(row, shapes)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "one.xml"
        ov.save_model(theirs, path, compress_to_fp16=False)
        model = irexec.read_model(path)
        errors = [finding.message for finding in irexec.validate(model) if finding.severity == "error"]
        _hold(not errors, f"findings: {'; '.join(errors)}{form}")
        try:
            _same_facts(model, theirs, one.node, ours, form)
        except Differs as error:
            if not (known := reason(row, str(error))):
                raise
            noted.append(known)
        try:
            compiled = irexec.compile_model(model)
            outputs = compiled(one.fed)
        except IrexecError as error:
            raise Differs(f"running: {error}{form}") from error
    return [outputs[name] for name in one.results]


def _same_facts(model: irexec.Model, theirs: ov.Model, name: str, ours: Sequence[np.ndarray], form: str) -> None:
    """What irexec infers is as tight as OpenVINO's inference, and admits what comes out."""
    facts = infer_shapes(model).facts
    values = next(node for node in model.nodes if node.name == name).outputs
    node = next(op for op in theirs.get_ops() if op.get_friendly_name() == name)
    for value, array, output in zip(values, ours, node.outputs(), strict=False):
        fact, kind = facts[value], output.get_element_type().get_type_name()
        text = f"{kind}{output.get_partial_shape()}"
        _hold(kind in ("dynamic", str(fact.element)), f"facts: {fact}, OpenVINO has {text}{form}")
        _hold(
            as_tight(fact.shape, parse_shape(str(output.get_partial_shape()))),
            f"facts: {fact} is looser than {text}{form}",
        )
        _hold(fact.admits(array), f"facts: {fact} does not admit {array.dtype}{list(array.shape)}{form}")


_ENDLESS = 1 << 30


def as_tight(ours: PartialShape, theirs: PartialShape) -> bool:
    """Whether nothing that the first allows is excluded by the second; OpenVINO counts on with its largest number as with any."""
    if theirs is None or ours is None:
        return theirs is None
    if len(ours) != len(theirs):
        return False
    for a, b in zip(ours, theirs, strict=True):
        top, maximum = high(a), high(b)
        # OpenVINO's infinity is a number, of which it may take a part.
        if low(a) < low(b) or (maximum is not None and maximum < 1 << 53 and (top is None or top > maximum)):
            return False
    return True


def _compared(row: Case, shapes: Shapes, ours: Sequence[np.ndarray]) -> str:
    """Why OpenVINO gives nothing to compare with. The plugin and folding may differ: one of them must agree."""
    found: list[Differs] = []
    refusals: list[str] = []
    for arrays in _answers(row, shapes, refusals):
        try:
            _same_values(ours, _settled(arrays, row), row, "values")
        except Differs as error:
            found.append(error)
        else:
            return ""
    if found:
        raise found[-1]
    return refusals[0] if refusals else "folding does not do it"


def _answers(row: Case, shapes: Shapes, refusals: list[str]) -> Iterator[list[np.ndarray]]:
    """What the CPU plugin and then what constant folding gives, where they give anything; else why not is added to ``refusals``."""
    attempts: list[Callable[[], list[np.ndarray] | None]] = [lambda: openvino.by_folding(row)]
    if row.type not in openvino.CRASHES:
        attempts.insert(0, lambda: openvino.on_cpu(row, set(shapes)))
        if set(shapes) != {0}:
            attempts.insert(1, lambda: openvino.on_cpu(row, {0}))
    for attempt in attempts:
        try:
            arrays = attempt()
        except (RuntimeError, MemoryError, OpError) as error:
            refusals.append(str(error).strip().splitlines()[-1])
            continue
        if arrays is not None:
            yield arrays


def _settled(arrays: Sequence[np.ndarray], row: Case) -> list[np.ndarray]:
    """The arrays in the carriers of the result's element types."""
    facts = infer(row, exact_facts(row))
    return [openvino.settled(array, fact.element) for array, fact in zip(arrays, facts, strict=True)]


def _same_values(ours: Sequence[np.ndarray], theirs: Sequence[np.ndarray], row: Case, what: str) -> None:
    same_values(_settled(ours, row), theirs, row, what)


def same_values(
    ours: Sequence[np.ndarray], theirs: Sequence[np.ndarray], row: Case, what: str, kinds: Sequence[Any] = ()
) -> None:
    """Raise Differs unless two results in the same carriers, of the element types ``kinds``, agree."""
    try:
        assert_same(ours, theirs, row, kinds)
    except AssertionError as error:
        if all(map(_near, ours, theirs)):
            return
        lines = " ".join(str(error).split())
        raise Differs(f"{what}: {lines[:600]}\n    ours {_short(ours)}\n    OpenVINO {_short(theirs)}") from None


def _near(ours: np.ndarray, theirs: np.ndarray) -> bool:
    """Whether two arrays of small floats differ by at most the error of the plugin's polynomials."""
    if ours.shape != theirs.shape or ours.dtype != theirs.dtype or ours.dtype.kind != "f":
        return bool(ours.shape == theirs.shape and np.array_equal(ours, theirs))
    return np.allclose(ours.astype(np.float64), theirs.astype(np.float64), rtol=0, atol=1e-6, equal_nan=True)


def _short(arrays: Sequence[np.ndarray]) -> str:
    text = str([array.tolist() for array in arrays])
    return text if len(text) < 600 else f"{text[:600]} ..."


def _form(row: Case, shapes: Shapes) -> str:
    return f" (inputs {', '.join(f'{i}: {shape_text(shape)}' for i, shape in shapes.items()) or 'all constant'})"


def describe(row: Case) -> str:
    """The row in one line, with the values of small inputs."""
    inputs = [
        f"{x.element}{list(x.array.shape)}" + (f" = {x.array.tolist()}" if x.array.size < 9 else "") for x in row.inputs
    ]
    return f"{row.type}-{row.since} ({'; '.join(inputs)}) {row.attributes}"
