"""The rows of every operation cover its schema: choices, optional inputs, types, ranks, nothing at all, little known, refusals."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args

import numpy as np
import pytest

from irexec.dtypes.elements import Element, element
from irexec.errors import OpError
from irexec.ir.dims import is_static
from irexec.ir.facts import Fact
from irexec.schema.attributes import REQUIRED, Attribute
from irexec.schema.opdef import OpDef
from irexec.testing import Case, FactsCase, Refusal, Row, Typed
from irexec.testing.laws import infer
from irexec.testing.rows import exact_facts, read_attributes
from tests.support.cases import families, runnable_definitions

# Their rows are graphs.
_IN_GRAPHS = {"Parameter", "Result", "Constant", "ReadValue", "Assign", "If", "Loop", "TensorIterator"}

_ROWS: dict[tuple[str, int | str], list[Row]] = {}
for _rows in families().values():
    for _row in _rows:
        _ROWS.setdefault((_row.type, _row.since), []).append(_row)

_FOURIER = "which sums of infinities are NaN is a matter of the order in which they are added"
_IMAGES = "images hold neither NaN nor infinities"
_SPELLED = "another spelling of sort_result_type, whose rows ask for every order"
_REFUSED = "refused, and there is a row that says so"
# What the rows of an operation leave out on purpose, and why.
EXCEPT: dict[tuple[str, str], str] = {
    **{(type, "linear_before_reset=True"): _REFUSED for type in ("AUGRUCell", "AUGRUSequence")},
    **{
        ("RoPE", f"config.{name}=True"): _REFUSED
        for name in ("support_2d_rope", "support_3d_rope", "use_rope_cache", "is_ltx_video")
    },
    **{(f"{image}toNV12", "NaN or infinity"): _IMAGES for image in ("BGR", "RGB")},
    **{(f"{layout}to{image}", "NaN or infinity"): _IMAGES for layout in ("NV12", "I420") for image in ("BGR", "RGB")},
    **{(type, "NaN or infinity"): _FOURIER for type in ("DFT", "IDFT", "RDFT", "IRDFT", "STFT", "ISTFT")},
    **{
        (type, f"sort_result={order}"): _SPELLED
        for type in ("MatrixNms", "MulticlassNms")
        for order in ("none", "score")
    },
    ("BinaryConvolution", "NaN or infinity"): "data are bits",
    ("GatherND", "negative batch_dims"): "refused, and there is a row that says so",
    ("Identity", "refusal"): "whatever it is given it gives",
    ("Interpolate", "mode=area"): "no implementation computes it: only its shape is inferred, and there is a row for that",
    ("Interpolate", "scalar"): "there is no axis to resize",
    ("Interpolate", "negative axes"): "the axes of Interpolate-1 are a set of those counted from the front",
    ("Multinomial", "NaN or infinity"): "a chance is a number",
    ("Proposal", "empty"): "OpenVINO allows no empty batch",
    ("ROIAlignRotated", "NaN or infinity"): "whether a point beside an infinity is NaN depends on whether weights of 0 count",
    ("RandomUniform", "NaN or infinity"): "there is no uniform distribution between infinities",
    ("Range", "NaN or infinity"): "refused, and there is a row that says so",
    **{
        (type, "a second rank or type"): "the inputs of OpenVINO's tokenizers are i32, and of one rank"
        for type in (
            "RaggedToRagged", "SentencepieceDetokenizer", "SentencepieceStreamDetokenizer", "UTF8Validate",
            "VocabDecoder", "VocabEncoder",
        )
    },
    ("SentencepieceTokenizer", "a second rank or type"): "strings and their bytes are two numbers of inputs",
    ("UnigramTokenizer", "NaN or infinity"): "a score is a number",
    ("ShapeOf", "NaN or infinity"): "it does not look at numbers",
    ("ShapeOf", "refusal"): "everything has a shape",
    ("Softmax", "negative axis"): "Softmax-1 refuses them, and there is a row that says so",
}  # fmt: skip


def _cases(definition: OpDef) -> list[Case]:
    return [row for row in _ROWS.get((definition.type, definition.since), []) if isinstance(row, Case)]


def _values_to_try(definition: OpDef, attribute: Attribute) -> list[Any]:
    """Every value of an enum or a boolean; of an element type the two of indices."""
    kind = attribute.annotation
    kinds = {kind, *get_args(kind)}
    if attribute.choices:
        return list(attribute.choices)
    if bool in kinds:
        return [False, True]
    if Element in kinds and attribute.default is not REQUIRED and attribute.default in (element("i32"), element("i64")):
        return [element("i32"), element("i64")]
    return []


def _choices(definition: OpDef, rows: list[Case]) -> Iterator[str]:
    given = [definition.ungrouped(read_attributes(definition, row.attributes)) for row in rows]
    for attribute in definition.attributes:
        found = [values[attribute.parameter] for values in given]
        for value in _values_to_try(definition, attribute):
            if value not in found:
                yield f"{attribute.name}={value}"


def _inputs(definition: OpDef, rows: list[Case]) -> Iterator[str]:
    for index, spec in enumerate(definition.inputs):
        if spec.optional:
            if not any(len(row.inputs) > index for row in rows):
                yield f"{spec.name} given"
            if not any(len(row.inputs) <= index for row in rows):
                yield f"{spec.name} left out"
        if spec.variadic and len({len(row.inputs) for row in rows}) < 2:
            yield f"{spec.name} of two lengths"


def _variety(definition: OpDef, rows: list[Case]) -> Iterator[str]:
    firsts = [row.inputs[0] for row in rows if row.inputs]
    if len({x.array.ndim for x in firsts}) < 2 and len({x.element for x in firsts}) < 2:
        yield "a second rank or type"


def _floats(definition: OpDef, rows: list[Case]) -> Iterator[str]:
    found = {x.element.name for row in rows for x in row.inputs}
    for name in ("f32", "f16", "bf16"):
        if name not in found and any(_takes(row, name) for row in rows):
            yield name


def _takes(row: Case, name: str) -> bool:
    """Whether the shape rule allows the row's floating-point inputs to be of another type."""
    if not any(x.element.is_float for x in row.inputs):
        return False
    facts = [
        Fact(element(name), fact.shape) if fact.element and fact.element.is_float else fact for fact in exact_facts(row)
    ]
    try:
        infer(row, facts)
    except OpError:
        return False
    return True


def _corners(definition: OpDef, rows: list[Case]) -> Iterator[str]:
    if not any(map(_has_nothing, rows)):
        yield "empty"
    if not any(row.inputs[0].array.ndim == 0 for row in rows if row.inputs) and any(map(_takes_a_scalar, rows)):
        yield "scalar"
    if not any(_is_odd(x) for row in rows for x in row.inputs) and any(
        x.element.is_float for row in rows for x in row.inputs
    ):
        yield "NaN or infinity"


def _has_nothing(row: Case) -> bool:
    facts = [*exact_facts(row), *infer(row, exact_facts(row))]
    return any(0 in fact.shape for fact in facts if fact.shape is not None)


def _takes_a_scalar(row: Case) -> bool:
    facts = exact_facts(row)
    try:
        infer(row, [Fact(facts[0].element, ()), *facts[1:]])
    except OpError:
        return False
    return True


def _is_odd(x: Typed) -> bool:
    return x.array.dtype.kind == "f" and not np.isfinite(x.array).all()


def _axes(definition: OpDef, rows: list[Case]) -> Iterator[str]:
    for index, spec in enumerate(definition.inputs):
        if spec.name in ("axis", "axes", "reduction_axes"):
            given = [row.inputs[index].array for row in rows if len(row.inputs) > index]
            if not any((array < 0).any() for array in given):
                yield f"negative {spec.name}"
    for attribute in definition.attributes:
        if attribute.name in ("axis", "axes", "seq_axis", "batch_axis", "batch_dims"):
            values = [
                definition.ungrouped(read_attributes(definition, row.attributes))[attribute.parameter] for row in rows
            ]
            if not any(np.any(np.asarray(value) < 0) for value in values):
                yield f"negative {attribute.name}"


def _is_open(row: FactsCase) -> bool:
    return not all(is_static(fact.shape) for fact in (*row.inputs, *infer(row, row.inputs)))


def _knowledge(definition: OpDef, rows: list[Case]) -> Iterator[str]:
    every = _ROWS.get((definition.type, definition.since), [])
    if not any(isinstance(row, FactsCase) and _is_open(row) for row in every):
        yield "dynamic"
    if not any(isinstance(row, Refusal) for row in every):
        yield "refusal"


def missing(definition: OpDef) -> list[str]:
    """What no row of the operation asks."""
    rows = _cases(definition)
    return [
        what
        for look in (_choices, _inputs, _variety, _floats, _corners, _axes, _knowledge)
        for what in look(definition, rows)
    ]


_DEFINITIONS = [definition for definition in runnable_definitions() if definition.type not in _IN_GRAPHS]


@pytest.mark.parametrize("definition", _DEFINITIONS, ids=lambda definition: f"{definition.type}-{definition.since}")
def test_rows_cover_the_schema(definition: OpDef) -> None:
    assert [what for what in missing(definition) if (definition.type, what) not in EXCEPT] == []


def test_no_exception_is_stale() -> None:
    lacking = {(definition.type, what) for definition in _DEFINITIONS for what in missing(definition)}
    assert EXCEPT.keys() - lacking == set()
