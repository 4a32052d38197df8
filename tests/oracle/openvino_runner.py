"""OpenVINO as the reference: one-operation IR written here, run by the wheel.

Nothing of irexec.io is used, so that an error there cannot hide. The CPU plugin runs at f32
precision; constant folding is OpenVINO's reference implementation, and what counts where the two differ.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import openvino as ov
from openvino.passes import ConstantFolding, Manager

from irexec.analysis.evaluate import as_tuple
from irexec.dtypes.elements import BOOLEAN, F32, Element, round_to
from irexec.ir.dims import ANY, is_static, shape_text
from irexec.ir.facts import Fact
from irexec.ir.shape_text import parse_shape, write_shape
from irexec.testing import Case, FactsCase, Typed
from irexec.testing.laws import COARSE, infer
from irexec.testing.rows import exact_facts
from tests.oracle import inner
from tests.support.one_operation import Text, one_operation, spelled, version_of

with contextlib.suppress(ImportError):
    # It gives every Core the operations of tokenizers.
    import openvino_tokenizers  # noqa: F401

# A model with operations of an extension needs the Core that has loaded it.
CORE = ov.Core()


class Refused(Exception):
    """OpenVINO cannot say."""


def model_of(text: Text) -> ov.Model:
    """The IR as OpenVINO reads it; raises RuntimeError where it does not."""
    blob = ov.Tensor(np.frombuffer(bytes(text.blob) or b"\0", np.uint8).copy())
    return CORE.read_model(text.xml().encode(), blob)


def _one_operation(row: Case, parameters: set[int]) -> tuple[ov.Model, list[np.ndarray]]:
    shapes = {i: row.inputs[i].array.shape for i in parameters}
    if row.since == "extension":
        # The shapes that the operations declare for their outputs are not those of all results.
        shapes = {i: (ANY,) * len(shape) for i, shape in shapes.items()}
    one = one_operation(row, shapes)
    return model_of(one.text), list(one.fed.values())


def on_cpu(row: Case, parameters: set[int]) -> list[np.ndarray]:
    """What the CPU plugin gives; these inputs are Parameters, the others constants. Raises RuntimeError where it refuses."""
    model, fed = _one_operation(row, parameters)
    options = {"INFERENCE_PRECISION_HINT": "f32", "EXECUTION_MODE_HINT": "ACCURACY"}
    compiled = CORE.compile_model(model, "CPU", options)
    request = compiled.create_infer_request()
    request.infer([array.astype(str) if array.dtype == object else array for array in fed])
    outputs = [request.get_output_tensor(i) for i in range(len(compiled.outputs))]
    return [np.array(one.str_data if one.element_type == ov.Type.string else one.data) for one in outputs]


def by_folding(row: Case) -> list[np.ndarray] | None:
    """What constant folding gives; None where it leaves the operation alone. Raises RuntimeError where it refuses."""
    model, _ = _one_operation(row, set())
    manager = Manager()
    manager.register_pass(ConstantFolding())
    manager.run_passes(model)
    nodes = [result.input_value(0).get_node() for result in model.get_results()]
    if any(node.get_type_name() != "Constant" for node in nodes):
        return None
    return [np.array(node.data) for node in nodes]


_FIRST_CONSTANT = {"RegexNormalization": 3, "RegexSplit": 5, "SpecialTokensSplit": 5}
# The plugin does not refuse these, it brings the process down.
CRASHES = ("Convert", "ConvertLike")


def _answers(row: Case) -> Iterator[tuple[str, list[np.ndarray]]]:
    everything = set(range(len(row.inputs)))
    if row.type in inner.TYPES:
        try:
            yield "the CPU plugin", inner.inputs_after(row)[0]
        except RuntimeError as error:
            yield str(error).strip().splitlines()[-1], []
        return
    if row.since == "extension":
        # Constant folding reads attributes before they are set, and outputs that are not. Patterns must be constants.
        first = _FIRST_CONSTANT.get(row.type, len(row.inputs))
        yield "the CPU plugin", on_cpu(row, {i for i in everything if i < first or row.inputs[i].element is BOOLEAN})
        return
    with contextlib.suppress(RuntimeError):
        folded = by_folding(row)
        if folded is not None:
            yield "folding", folded
            if row.type in CRASHES:
                return
    reasons = []
    for parameters in ({0}, everything):
        try:
            yield "the CPU plugin", on_cpu(row, parameters & everything)
            return
        except RuntimeError as error:
            reasons.append(str(error).strip().splitlines()[-1])
    if reasons:
        yield reasons[0], []


def run_case(row: Case, remarks: list[str] | None = None) -> tuple[np.ndarray, ...]:
    """What OpenVINO gives for a row, in the carriers of the result's element types.

    Raises:
        Refused: neither implementation runs it.
    """
    empty = _nothing(row)
    if empty is not None:
        return empty
    answers = list(_answers(row))
    good = [(how, arrays) for how, arrays in answers if arrays]
    if not good:
        if any(x.element.name in _HALVES for x in row.inputs):
            return _in_f32(row, remarks)
        raise Refused(answers[-1][0])
    kinds = [fact.element for fact in infer(row, exact_facts(row))]
    alike = [tuple(settled(a, k) for a, k in zip(arrays, kinds, strict=True)) for _, arrays in good]
    if len(alike) == 2 and remarks is not None and not _alike(*alike, kinds):
        remarks.append(f"{row.id}: folding and the CPU plugin differ, folding is recorded")
    return alike[0]


def _nothing(row: Case) -> tuple[np.ndarray, ...] | None:
    """The outputs, if OpenVINO infers that none has an element: to run such a model brings some of its kernels down."""
    try:
        model, _ = _one_operation(row, set())
    except RuntimeError:
        return None
    shapes = [result.input_value(0).get_partial_shape() for result in model.get_results()]
    if not all(shape.is_static and 0 in shape.to_shape() for shape in shapes):
        return None
    kinds = [fact.element or F32 for fact in infer(row, exact_facts(row))]
    return tuple(np.zeros(tuple(shape.to_shape()), kind.carrier) for shape, kind in zip(shapes, kinds, strict=True))


_HALVES = ("f16", "bf16")


def _in_f32(row: Case, remarks: list[str] | None) -> tuple[np.ndarray, ...]:
    """What OpenVINO gives for the same numbers in f32, rounded: some operations have no kernel for bf16."""
    inputs = tuple(Typed(F32, x.array.astype(np.float32)) if x.element.name in _HALVES else x for x in row.inputs)
    found = run_case(replace(row, inputs=inputs), remarks)
    kinds = [fact.element for fact in infer(row, exact_facts(row))]
    return tuple(settled(array, kind) for array, kind in zip(found, kinds, strict=True))


def settled(array: np.ndarray, kind: Element | None) -> np.ndarray:
    """The array in the carrier of the element type, rounded to it."""
    if kind is None:
        return array
    if kind.kind == "string":
        return array.astype(str).astype(object)
    typed = array.astype(np.bool_) if kind is BOOLEAN else array.astype(kind.carrier)
    return typed if kind.native else round_to(kind, typed)


def _alike(first: Sequence[np.ndarray], second: Sequence[np.ndarray], kinds: Sequence[Element | None]) -> bool:
    for a, b, kind in zip(first, second, kinds, strict=True):
        if a.shape != b.shape:
            return False
        if a.dtype.kind != "f":
            if not np.array_equal(a, b):
                return False
        elif not np.allclose(
            a.astype(np.float64), b.astype(np.float64), COARSE.get(str(kind), 1e-4), 1e-5, equal_nan=True
        ):
            return False
    return True


def infer_case(row: FactsCase) -> tuple[str, ...]:
    """What OpenVINO's shape inference says, as texts such as "f32[?,2..5]".

    Raises:
        Refused: its inference fails.
    """
    text = Text([], [], bytearray())
    sources = []
    for fact in row.inputs:
        if fact.value is not None and fact.element is not None:
            sources.append((text.constant(fact.element, fact.value), 0))
        else:
            sources.append((text.parameter(fact.element or F32, write_shape(fact.shape)), 0))
    ours = as_tuple(infer(row, row.inputs))
    node = text.layer(
        spelled(row.type), version_of(row.since), row.attributes, sources, [fact.element for fact in ours]
    )
    for i in range(len(ours)):
        text.layer("Result", "opset1", {}, [(node, len(sources) + i)], [])
    try:
        model = model_of(text)
    except RuntimeError as error:
        raise Refused(str(error).strip().splitlines()[-1]) from None
    outputs = [result.input_value(0) for result in model.get_results()]
    return tuple(_fact_text(output) for output in outputs)


def _fact_text(output: ov.Output) -> str:
    shape = str(output.get_partial_shape())
    name = output.get_element_type().get_type_name()
    return f"{name}{shape_text(parse_shape(shape))}"


def is_exact(fact: Fact) -> bool:
    """Whether the fact leaves nothing open."""
    return is_static(fact.shape) and fact.element is not None
