"""Which attention in primitives is recognised, and that the result stays that of the reference kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import irexec
from irexec.analysis.builder import Builder
from irexec.dtypes.elements import F32
from tests.support.passes import agrees, planned_types, reasons

PASS = "recognise attention"
HEADS, ROWS, COLUMNS, WIDTH, VALUES = 3, 5, 7, 4, 6


@dataclass(frozen=True)
class Form:
    """How the attention is written.

    Attributes:
        transposed: of the product with the key, "attribute", "Transpose" or "none": the key comes as (..., width, columns).
        scale: where the scores are scaled: any of "query", "key", "scores", "divided".
        masks: shapes of what is added to the scores.
        axis: of the Softmax.
        values_transposed: whether the values come as (..., values, columns).
        leading: the axes in front.
        read: "scores" or "weights", to be read elsewhere.
    """

    transposed: str = "attribute"
    scale: tuple[str, ...] = ("scores",)
    masks: tuple[tuple[int, ...], ...] = ()
    axis: int = -1
    values_transposed: bool = False
    leading: tuple[Any, ...] = (2, HEADS)
    read: str = ""


def _scaled(b: Builder, x: Any, where: str, form: Form) -> Any:
    if where == "scores" and "divided" in form.scale:
        return b.emit("Divide", x, b.constant([2.0], F32))
    return b.emit("Multiply", b.constant(0.3, F32), x) if where in form.scale else x


def _key(b: Builder, form: Form) -> Any:
    if form.transposed == "none":
        return b.parameter(F32, (*form.leading, WIDTH, COLUMNS), "key")
    if form.transposed == "attribute":
        return b.parameter(F32, (*form.leading, COLUMNS, WIDTH), "key")
    return b.emit("Transpose", b.parameter(F32, (form.leading[0], COLUMNS, HEADS, WIDTH), "key"), [0, 2, 3, 1])


def _model(form: Form) -> irexec.Model:
    b = Builder("attention")
    query = _scaled(b, b.parameter(F32, (*form.leading, ROWS, WIDTH), "query"), "query", form)
    key = _scaled(b, _key(b, form), "key", form)
    scores = b.emit("MatMul", query, key, transpose_a=False, transpose_b=form.transposed == "attribute")
    masked = _scaled(b, scores, "scores", form)
    for i, shape in enumerate(form.masks):
        masked = b.emit("Add", masked, b.parameter(F32, shape, f"mask{i}"))
    weights = b.emit("Softmax", masked, axis=form.axis)
    last = (VALUES, COLUMNS) if form.values_transposed else (COLUMNS, VALUES)
    values = b.parameter(F32, (*form.leading, *last), "values")
    b.result(b.emit("MatMul", weights, values, transpose_a=False, transpose_b=form.values_transposed))
    if form.read:
        b.result({"scores": scores, "weights": weights}[form.read])
    return b.model()


RECOGNISED = {
    "scores scaled": Form(),
    "scores divided": Form(scale=("divided",)),
    "not scaled": Form(scale=()),
    "query scaled": Form(scale=("query",)),
    "query and key scaled": Form(scale=("query", "key")),
    "key scaled after its Transpose": Form(transposed="Transpose", scale=("key",)),
    "key transposed": Form(transposed="Transpose"),
    "key as columns": Form(transposed="none"),
    "axis counted from the front": Form(axis=3),
    "mask": Form(masks=((2, 1, ROWS, COLUMNS),)),
    "mask of columns": Form(masks=((1, 1, 1, COLUMNS),), scale=("query",)),
    "two masks": Form(masks=((2, 1, 1, COLUMNS), (1, HEADS, ROWS, COLUMNS))),
    "values transposed": Form(values_transposed=True),
    "one leading axis": Form(leading=(4,)),
}


@pytest.mark.parametrize("name", RECOGNISED)
def test_recognised(name: str) -> None:
    model = _model(RECOGNISED[name])
    types = planned_types(model, PASS)
    assert types.count("ScaledDotProductAttention") == 1
    assert not {"MatMul", "Softmax", "Multiply", "Divide"} & set(types)
    agrees(model, 1e-5)


LEFT = {
    "another axis": (Form(axis=2), "attention: its softmax is along axis 2"),
    "scores that are read elsewhere": (Form(read="scores"), "attention: a value inside is read elsewhere"),
    "weights that are read elsewhere": (Form(read="weights"), "attention: a value inside is read elsewhere"),
    "unknown shapes": (Form(leading=(irexec.Dim(), HEADS)), "attention: its shapes are not known"),
    "matrices alone": (Form(leading=()), "attention: "),
    "a mask of rank 1": (Form(masks=((COLUMNS,),)), "attention: "),
}


@pytest.mark.parametrize("name", LEFT)
def test_left_alone(name: str) -> None:
    form, reason = LEFT[name]
    model = _model(form)
    assert planned_types(model, PASS) == planned_types(model, "none")
    (given,) = reasons(model, PASS)
    assert given.startswith(reason)
    agrees(model, 1e-5)


def test_a_mask_that_is_a_constant_of_scores() -> None:
    b = Builder("causal")
    query, key, values = (b.parameter(F32, (1, 2, 4, 8), name) for name in ("query", "key", "values"))
    hidden = np.where(np.tri(4), 0, np.finfo(np.float32).min).astype(np.float32)[None, None]
    scores = b.emit(
        "MatMul", b.emit("Multiply", query, b.constant(0.35, F32)), key, transpose_a=False, transpose_b=True
    )
    weights = b.emit("Softmax", b.emit("Add", b.constant(hidden, F32), scores), axis=-1)
    b.result(b.emit("MatMul", weights, values, transpose_a=False, transpose_b=False))
    assert planned_types(b.model(), PASS) == ["ScaledDotProductAttention"]
    agrees(b.model(), 1e-5)


@pytest.mark.parametrize("vector", ["query", "key", "value"])
def test_a_product_with_a_vector_is_not_attention(vector: str) -> None:
    """MatMul ignores that a vector is transposed."""
    shapes = {"query": (ROWS, WIDTH), "key": (COLUMNS, WIDTH), "value": (COLUMNS, VALUES)}
    shapes[vector] = (COLUMNS,) if vector == "value" else (WIDTH,)
    if vector == "key":
        shapes["value"] = (ROWS, VALUES)
    b = Builder("vectors")
    query, key, value = (b.parameter(F32, shape, name) for name, shape in shapes.items())
    scores = b.emit("MatMul", query, key, transpose_a=vector == "query", transpose_b=True)
    b.result(
        b.emit("MatMul", b.emit("Softmax", scores, axis=-1), value, transpose_a=False, transpose_b=vector == "value")
    )
    model = b.model()
    assert "attention: a product has a vector" in reasons(model, PASS)
    agrees(model, 1e-5)


def test_a_key_in_a_transpose_without_an_order() -> None:
    b = Builder("reversed")
    query, key = b.parameter(F32, (ROWS, WIDTH), "query"), b.parameter(F32, (COLUMNS, WIDTH), "key")
    columns = b.emit("Transpose", key, b.constant(np.zeros(0, np.int64)))
    scores = b.emit("MatMul", query, columns, transpose_a=False, transpose_b=False)
    value = b.parameter(F32, (COLUMNS, VALUES), "value")
    b.result(b.emit("MatMul", b.emit("Softmax", scores, axis=-1), value, transpose_a=False, transpose_b=False))
    agrees(b.model(), 1e-5)
