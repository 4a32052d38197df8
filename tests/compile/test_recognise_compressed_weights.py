"""Which weights stay compressed, and that products and gathered rows stay those of the reference kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import irexec
from irexec.analysis.builder import Builder
from irexec.analysis.f32_arithmetic import compute_in_f32
from irexec.analysis.shape_inference import infer_shapes
from irexec.backend.compressed import CompressedSource
from irexec.dtypes.elements import BF16, F16, F32, I4, I8, I64, NF4, U4, U8, Element
from tests.support.passes import optimized
from tests.support.recognition import reasons

PASS = "recognise compressed weights"
ROWS, WIDTH, GROUP = 96, 128, 32


@dataclass(frozen=True)
class Form:
    """How weights are stored.

    Attributes:
        element: of the stored values.
        computed: the type in which they are scaled.
        grouped: whether a row has several groups, and is put together by a Reshape.
        zero: of the zero point: "constant", "converted" or "".
        scale_first: whether the scale is the first operand.
        scale_shape: other than one value for each group or row.
        converted_scale: whether the scale is stored as f16 where it is used as f32.
    """

    element: Element = I4
    computed: Element = F16
    grouped: bool = True
    zero: str = ""
    scale_first: bool = False
    scale_shape: tuple[int, ...] = ()
    converted_scale: bool = False


def weights(b: Builder, form: Form, rows: int = ROWS, width: int = WIDTH) -> Any:
    """The weights (rows, width) of f32."""
    rng = np.random.default_rng(1)
    shape = (rows, width // GROUP, GROUP) if form.grouped else (rows, width)
    low, high = (-1, 2) if form.element is NF4 else (0, 16) if form.element in (U4, U8) else (-8, 8)
    value = b.emit("Convert", b.constant(rng.integers(low, high, shape), form.element), destination_type=form.computed)
    one_each = (*shape[:-1], 1)
    if form.zero == "converted":
        value = b.emit(
            "Subtract",
            value,
            b.emit("Convert", b.constant(rng.integers(0, 8, one_each), form.element), destination_type=form.computed),
        )
    elif form.zero:
        value = b.emit("Subtract", value, b.constant(rng.integers(0, 8, one_each), form.computed))
    factors = rng.uniform(0.01, 0.02, form.scale_shape or one_each)
    scale = b.constant(factors, F16 if form.converted_scale else form.computed)
    if form.converted_scale:
        scale = b.emit("Convert", scale, destination_type=form.computed)
    value = b.emit("Multiply", *((scale, value) if form.scale_first else (value, scale)))
    if form.grouped:
        value = b.emit("Reshape", value, [rows, width], special_zero=False)
    return value if form.computed is F32 else b.emit("Convert", value, destination_type=F32)


def product(form: Form, tokens: Any = 5, **sizes: int) -> irexec.Model:
    b = Builder("product")
    x = b.parameter(F32, (1, tokens, sizes.get("width", WIDTH)), "x")
    b.result(b.emit("MatMul", x, weights(b, form, **sizes), transpose_a=False, transpose_b=True))
    return b.model()


def compressed(model: irexec.Model) -> list[CompressedSource]:
    graph = optimized(model, [PASS])[0]
    return [value.constant for value in graph.constants() if isinstance(value.constant, CompressedSource)]


KEPT = {
    "int4 with groups": Form(),
    "uint4 with zero points": Form(U4, zero="converted"),
    "uint8 by rows": Form(U8, grouped=False, zero="constant"),
    "int8 by rows in f32": Form(I8, F32, grouped=False),
    "int4 in f32": Form(I4, F32, zero="constant", scale_first=True),
    "a scale stored as f16": Form(U4, F32, zero="converted", converted_scale=True),
    "one scale": Form(I8, F32, grouped=False, scale_shape=(1,)),
    "a scale for each column": Form(I8, F32, grouped=False, scale_shape=(1, WIDTH)),
}


@pytest.mark.parametrize("name", KEPT)
@pytest.mark.parametrize("mode", ["packed", "unpacked"])
@pytest.mark.parametrize("tokens", [5, irexec.Dim()], ids=["static", "dynamic"])
def test_kept(name: str, mode: Any, tokens: Any) -> None:
    model = product(KEPT[name], tokens)
    (source,) = compressed(model)
    x = np.random.default_rng(2).standard_normal((1, 5, WIDTH)).astype(np.float32)
    expected = irexec.compile_model(model, optimize=False)([x])[0]
    np.testing.assert_allclose(irexec.compile_model(model, weights=mode)([x])[0], expected, rtol=1e-5, atol=1e-5)
    # Decompressing gives the very values that the operations give.
    constant = next(node for node in model.nodes if node.type == "MatMul").inputs[1]
    assert constant is not None
    np.testing.assert_array_equal(
        source.array(), irexec.compile_model(model, optimize=False, precision="as-written").values([x], [constant])[0]
    )


@pytest.mark.parametrize("name", KEPT)
def test_kept_where_f16_is_computed_in_f32(name: str) -> None:
    model = product(KEPT[name])
    compute_in_f32(model, infer_shapes(model).facts)
    assert len(compressed(model)) == 1


LEFT = {
    "few elements": (Form(), {"rows": 2, "width": 64}, "compressed weights: 128 elements are too few"),
    "another type": (Form(NF4), {}, "compressed weights: values of nf4 are not decompressed by blocks"),
    "scaled in bf16": (Form(I4, BF16), {}, "compressed weights: it is scaled in bf16"),
    "a scale for each element": (
        Form(I8, F32, False, scale_shape=(ROWS, WIDTH)),
        {},
        "compressed weights: its groups are too small",
    ),
}


@pytest.mark.parametrize("name", LEFT)
def test_left_alone(name: str) -> None:
    form, sizes, reason = LEFT[name]
    model = product(form, **sizes)
    assert compressed(model) == []
    assert reasons(model, PASS) == [reason]


@pytest.mark.parametrize("mode", ["packed", "unpacked"])
@pytest.mark.parametrize(
    ("version", "indices"), [(8, [[3, 0, -1, 95, 96, -97]]), (7, [[3, -1, 95, 96]]), (1, 7)], ids=["8", "7", "1"]
)
def test_gathered_rows(mode: Any, version: int, indices: Any) -> None:
    b = Builder("words")
    words = b.parameter(I64, np.shape(indices), "words")
    b.result(b.emit("Gather", weights(b, Form(I8, F16, grouped=False)), words, 0, version=version))
    model = b.model()
    compiled = irexec.compile_model(model, weights=mode)
    given = [np.array(indices, np.int64)]
    np.testing.assert_array_equal(compiled(given)[0], irexec.compile_model(model, optimize=False)(given)[0])
    assert not any(
        isinstance(made, np.ndarray) and made.nbytes >= 4 * ROWS * WIDTH
        for _, made in compiled.program.compilation.store.made()
    )


def test_a_table_that_is_read_by_a_product_too_is_one_constant() -> None:
    b = Builder("tied")
    words = b.parameter(I64, (1, 4), "words")
    table = weights(b, Form(U4, zero="converted"))
    x = b.emit("Gather", table, words, 0, version=8)
    b.result(b.emit("MatMul", x, table, transpose_a=False, transpose_b=True))
    model = b.model()
    assert len(compressed(model)) == 1
    given = [np.array([[1, 5, 0, 95]])]
    expected = irexec.compile_model(model, optimize=False)(given)[0]
    for mode in ("packed", "unpacked"):
        np.testing.assert_allclose(irexec.compile_model(model, weights=mode)(given)[0], expected, rtol=1e-5, atol=1e-6)


def test_plans_for_several_shapes_share_the_weights() -> None:
    model = product(Form(), irexec.Dim())
    compiled = irexec.compile_model(model, weights="unpacked")
    for tokens in (2, 40, 7, 90):
        compiled([np.ones((1, tokens, WIDTH), np.float32)])
    held = [
        made.nbytes
        for _, made in compiled.program.compilation.store.made()
        if isinstance(made, np.ndarray) and made.nbytes > 10_000
    ]
    assert sum(held) <= 4 * ROWS * WIDTH
