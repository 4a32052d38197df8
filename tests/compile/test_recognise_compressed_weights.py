"""Patterns, which compressed weights they recognise, and how much of whole networks."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irexec
from irexec.analysis.builder import Builder
from irexec.analysis.f32_arithmetic import compute_in_f32
from irexec.analysis.shape_inference import infer_shapes
from irexec.backend.compressed import CompressedSource
from irexec.compile.passes import PASSES
from irexec.compile.pattern import Match, Pattern, array, call, either, number, root, value
from irexec.dtypes.elements import BF16, F16, F32, I4, I8, I64, NF4, U4, U8, Element
from tests.support.networks import difference, feeds, unpacked
from tests.support.passes import optimized, reasons

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
    "a scale for each element": (Form(I8, F32, False, scale_shape=(ROWS, WIDTH)), {}, "compressed weights: its groups are too small"),
}  # fmt: skip


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


# How much is recognised in the recorded networks; tests/test_networks.py compares their results with OpenVINO's.


@pytest.mark.parametrize(
    ("network", "count"), [("llama_sdpa", 5), ("gemma2", 9), ("qwen3", 9), ("t5", 12), ("mamba", 3)]
)
def test_root_mean_squares(network: str, count: int, tmp_path: Path) -> None:
    _, rewriting = optimized(irexec.read_model(unpacked(network, tmp_path)), ["recognise normalizations"])
    assert rewriting.report.applied == {"recognise normalizations": count}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("mode", ["packed", "unpacked"])
@pytest.mark.parametrize(("network", "count"), [("llama_int4_asym", 16), ("llama_int8_sym", 16), ("bert_int8", 16)])
@pytest.mark.covering(1)
def test_compressed_weights(
    network: str, count: int, mode: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The recorded networks are small: all of their weights are kept compressed here."""
    monkeypatch.setattr(sys.modules["irexec.compile.passes.recognise_compressed_weights"], "SMALLEST", 1)
    path = unpacked(network, tmp_path)
    model = irexec.read_model(path)
    _, rewriting = optimized(model, ["recognise compressed weights"])
    assert rewriting.report.applied == {"recognise compressed weights": count}
    compiled = irexec.compile_model(model, weights=mode, precision="as-written")
    answers = np.load(path.with_suffix(".npz"))
    for i, inputs in enumerate(feeds(path, compiled.inputs)):
        for j, result in enumerate(compiled(inputs).values()):
            assert difference(result, answers[f"{i}.{j}"]) < 2e-5


# Patterns match every spelling of the same arithmetic, and nothing else.


x, y, z = value("x"), value("y"), value("z")
Build = Callable[["_Terms"], Any]


class _Terms:
    """Operations on the inputs a, b, c of a model."""

    def __init__(self) -> None:
        self.builder = Builder("m")
        self.a, self.b, self.c = (self.builder.parameter(F32, (2, 3), name) for name in "abc")

    def __call__(self, type: str, *operands: Any, **attributes: Any) -> Any:
        constants = [
            self.builder.constant(one, F32) if isinstance(one, int | float | list) else one for one in operands
        ]
        return self.builder.emit(type, *constants, **attributes)


def _matches(pattern: Pattern, build: Build) -> list[dict[str, str]]:
    """What each name is bound to, for every match."""
    terms = _Terms()
    terms.builder.result(build(terms))
    graph = optimized(terms.builder.model(), [])[0]
    return [
        {name: bound.name for name, bound in match.values.items()} for match in pattern.match(graph.targets[0], Match())
    ]


MATCHED: dict[str, tuple[Pattern, Build]] = {
    "operands in another order": (x * call("Erf", x), lambda t: t("Multiply", t("Erf", t.a), t.a)),
    "another grouping": (x * y * call("Abs", z) * 6, lambda t: t("Multiply", t("Multiply", t.a, 2), t("Multiply", t("Abs", t.b), t("Multiply", 3, t.c)))),
    "a division by a number": (x * 0.25, lambda t: t("Divide", t.a, 4)),
    "a negation": (-x, lambda t: t("Negative", t.a)),
    "a product with -1": (-x, lambda t: t("Multiply", t.a, -1)),
    "a difference from a number": (x + 3, lambda t: t("Subtract", t.a, -3)),
    "numbers in two places": (x + y + 5, lambda t: t("Add", t("Add", t.a, 2), t("Add", t.b, 3))),
    "no number": (x + y, lambda t: t("Add", t.a, t.b)),
    "a square as a product": (x**2, lambda t: t("Multiply", t.a, t.a)),
    "a square as a power": (x**2, lambda t: t("Power", t.a, 2)),
    "a cube": (x**3, lambda t: t("Multiply", t.a, t("Multiply", t.a, t.a))),
    "a root as a power": (root(x), lambda t: t("Power", t.a, 0.5)),
    "a reciprocal as a power": (1 / x, lambda t: t("Power", t.a, -1)),
    "any number": (number("n") * x, lambda t: t("Multiply", t.a, 7)),
    "no number for a name": (number("n") * call("Abs", x), lambda t: t("Abs", t.a)),
    "a maximum in another order": (call("Maximum", x, 0), lambda t: t("Maximum", 0, t.a)),
    "one of two types": (call("Abs|Sign", x), lambda t: t("Sign", t.a)),
    "the second of two patterns": (either(call("Abs", x), call("Sign", x)), lambda t: t("Sign", t.a)),
    "a constant of several elements": (x / array("n"), lambda t: t("Divide", t.a, [1.0, 2.0, 3.0])),
    "the rounding of float32": (x * 0.7978845608028654, lambda t: t("Multiply", t.a, 0.7978845)),
}  # fmt: skip


@pytest.mark.parametrize("name", MATCHED)
def test_matched(name: str) -> None:
    pattern, build = MATCHED[name]
    assert _matches(pattern, build)


OTHERS: dict[str, tuple[Pattern, Build]] = {
    "another number": (x * 0.5, lambda t: t("Multiply", t.a, 0.5001)),
    "a name for two values": (x * call("Erf", x), lambda t: t("Multiply", t.a, t("Erf", t.b))),
    "a difference in another order": (x - y * 2, lambda t: t("Subtract", t("Multiply", t.a, 2), t.b)),
    "a quotient in another order": (call("Abs", x) / y, lambda t: t("Divide", t.a, t("Abs", t.b))),
    "another attribute": (call("Clamp", x, min=0.0, max=6.0), lambda t: t("Clamp", t.a, min=0.0, max=5.0)),
    "a factor too many": (x * call("Abs", y), lambda t: t("Multiply", t("Multiply", t.a, t.b), t("Sign", t.c))),
    "a number of several elements": (x * 2, lambda t: t("Multiply", t.a, [2.0, 2.0, 2.0])),
    "a value for a constant": (call("Maximum", x, array("n")), lambda t: t("Maximum", t.a, t.b)),
    "different constants of one name": (call("Maximum", call("Minimum", x, number("n")), number("n")), lambda t: t("Maximum", t("Minimum", t.a, 1), 2)),
    "broadcasting of Caffe": (x + y, lambda t: t("Add", t.a, t.b, auto_broadcast="pdpd")),
    "the second output": (call("Split", x), lambda t: t("Split", t.a, t.builder.constant(1), num_splits=3)[1]),
}  # fmt: skip


@pytest.mark.parametrize("name", OTHERS)
def test_not_matched(name: str) -> None:
    pattern, build = OTHERS[name]
    assert _matches(pattern, build) == []


def test_names_are_bound_to_the_operands() -> None:
    found = _matches(x - y, lambda t: t("Subtract", t.b, t.a))
    assert found == [{"x": "b", "y": "a"}]


def test_numbers_of_products_and_sums() -> None:
    terms = _Terms()
    terms.builder.result(terms("Divide", terms("Multiply", terms("Multiply", 3, terms("Add", terms.a, 4)), 2), 4))
    graph = optimized(terms.builder.model(), [])[0]
    match = next((number("scale") * (x + number("shift"))).match(graph.targets[0], Match()))
    assert (match.number("scale"), match.number("shift")) == (1.5, 4)
    assert [operation.type for operation in match.operations] == ["Divide", "Multiply", "Multiply", "Add"]


@pytest.mark.parametrize("name", ["recognise activations", "recognise normalizations", "recognise attention"])
def test_a_second_run_changes_nothing(name: str) -> None:
    t = _Terms()
    e = t("Exp", t("Subtract", t.a, t("ReduceMax", t.a, t.builder.constant([1]), keep_dims=True)))
    softmax = t("Divide", e, t("ReduceSum", e, t.builder.constant([1]), keep_dims=True))
    t.builder.result(t("Multiply", softmax, t("Sigmoid", softmax)))
    graph, rewriting = optimized(t.builder.model(), [name])
    before, rewriting.name = [one.type for one in graph.order()], name
    changes = dict(rewriting.report.applied)
    _pass(name)(graph, rewriting)
    assert [one.type for one in graph.order()] == before
    assert rewriting.report.applied == changes


def _pass(name: str) -> Callable[..., None]:
    return next(one.rewrite for one in PASSES if one.name == name)
