"""Which normalizations in primitives are recognised, and that the result stays that of the reference kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import irexec
from irexec.analysis.builder import Builder
from irexec.dtypes.elements import F32
from tests.support.passes import agrees, planned_types, reasons

Build = Callable[[Builder, Any], Any]
PASS = "recognise normalizations"


def _model(build: Build, shape: tuple[Any, ...] = (3, 5, 8)) -> irexec.Model:
    builder = Builder("m")
    builder.result(build(builder, builder.parameter(F32, shape, "x")))
    return builder.model()


def _c(b: Builder, number: float) -> Any:
    return b.constant(number, F32)


def _mean(b: Builder, x: Any, axes: Any = -1) -> Any:
    return b.emit("ReduceMean", x, axes, keep_dims=True)


def _square(b: Builder, x: Any) -> Any:
    return b.emit("Power", x, _c(b, 2))


def _root(b: Builder, x: Any, eps: float = 1e-5) -> Any:
    return b.emit("Sqrt", b.emit("Add", x, _c(b, eps)))


def _layer_norm(b: Builder, x: Any) -> Any:
    centered = b.emit("Subtract", x, _mean(b, x))
    return b.emit("Divide", centered, _root(b, _mean(b, _square(b, centered))))


def _variance_around_another_mean(b: Builder, x: Any) -> Any:
    variance = _mean(b, b.emit("SquaredDifference", x, _mean(b, x, 1)))
    return b.emit("Divide", b.emit("Subtract", x, _mean(b, x)), _root(b, variance))


def _layer_norm_by_difference(b: Builder, x: Any) -> Any:
    mean = _mean(b, x, [1, 2])
    inverse = b.emit(
        "Power", b.emit("Add", _c(b, 1e-3), _mean(b, b.emit("SquaredDifference", mean, x), [1, 2])), _c(b, -0.5)
    )
    return b.emit("Multiply", inverse, b.emit("Subtract", x, mean))


def _layer_norm_by_product(b: Builder, x: Any) -> Any:
    centered = b.emit("Subtract", x, _mean(b, x))
    root = _root(b, _mean(b, b.emit("Multiply", centered, centered)))
    return b.emit("Multiply", centered, b.emit("Divide", _c(b, 1), root))


def _eps_outside(b: Builder, x: Any) -> Any:
    centered = b.emit("Subtract", x, _mean(b, x))
    deviation = b.emit("Sqrt", _mean(b, _square(b, centered)))
    return b.emit("Divide", centered, b.emit("Add", deviation, _c(b, 1e-3)))


def _scaled(b: Builder, x: Any) -> Any:
    return b.emit("Add", b.emit("Multiply", _layer_norm(b, x), [1.0] * 4 + [2.0] * 4), [0.5] * 8)


def _rms(b: Builder, x: Any) -> Any:
    return b.emit("Multiply", x, b.emit("Divide", _c(b, 1), _root(b, _mean(b, _square(b, x)))))


def _sum(b: Builder, x: Any, axes: Any = -1) -> Any:
    return b.emit("ReduceSum", x, axes, keep_dims=True)


def _normalized(b: Builder, x: Any, eps: float = 1e-6) -> Any:
    return b.emit("Divide", x, b.emit("Maximum", b.emit("ReduceL2", x, [1], keep_dims=True), _c(b, eps)))


def _shifted(b: Builder, x: Any, axes: Any = -1) -> Any:
    return b.emit("Subtract", x, b.emit("ReduceMax", x, axes, keep_dims=True))


def _softmax(b: Builder, x: Any, axes: Any = -1, summed: Any = None) -> Any:
    e = b.emit("Exp", _shifted(b, x, axes))
    return b.emit("Divide", e, _sum(b, e, axes if summed is None else summed))


def _log_softmax(b: Builder, x: Any) -> Any:
    shifted = _shifted(b, x, 1)
    return b.emit("Subtract", shifted, b.emit("Log", _sum(b, b.emit("Exp", shifted), 1)))


RECOGNISED: dict[str, tuple[list[str], Build]] = {
    "layer norm": (["MVN"], _layer_norm),
    "over two axes, by differences and a power": (["MVN"], _layer_norm_by_difference),
    "by products": (["MVN"], _layer_norm_by_product),
    "eps outside": (["MVN"], _eps_outside),
    "with scale and shift": (["MVN", "Multiply", "Add"], _scaled),
    "root mean square": (["NormalizeL2", "Multiply"], _rms),
    "sum of squares": (["NormalizeL2"], lambda b, x: b.emit("Divide", x, _root(b, _sum(b, b.emit("Multiply", x, x), [1, -1])))),
    "maximum of squares": (["NormalizeL2"], lambda b, x: b.emit("Divide", x, b.emit("Sqrt", b.emit("Maximum", _c(b, 1e-3), _sum(b, _square(b, x)))))),
    "maximum of the norm": (["NormalizeL2"], _normalized),
    "softmax": (["Softmax"], _softmax),
    "log softmax": (["LogSoftmax"], _log_softmax),
}  # fmt: skip


@pytest.mark.parametrize("name", RECOGNISED)
@pytest.mark.parametrize("shape", [(3, 5, 8), (irexec.Dim(), 5, 8)], ids=["static", "dynamic"])
def test_recognised(name: str, shape: tuple[Any, ...]) -> None:
    types, build = RECOGNISED[name]
    model = _model(build, shape)
    assert planned_types(model, PASS) == types
    agrees(model, 2e-6)


@pytest.mark.parametrize(
    "build",
    [_layer_norm, _eps_outside, _rms, _softmax],
    ids=["layer norm", "eps outside", "root mean square", "softmax"],
)
def test_of_a_scalar_it_stays(build: Build) -> None:
    """A reduction over axis -1 takes a scalar; MVN, NormalizeL2 and Softmax have no axis of it to work on."""
    model = _model(build, ())
    assert not {"MVN", "NormalizeL2", "Softmax"} & set(planned_types(model, PASS))
    agrees(model, 2e-6)


def _without_maximum(b: Builder, x: Any) -> Any:
    return b.emit("Divide", b.emit("Exp", x), _sum(b, b.emit("Exp", x)))


def _exponentials_read_elsewhere(b: Builder, x: Any) -> Any:
    e = b.emit("Exp", _shifted(b, x))
    return b.emit("Add", b.emit("Divide", e, _sum(b, e)), e)


LEFT: dict[str, tuple[Build, str]] = {
    "a variance around another mean": (_variance_around_another_mean, ""),
    "other axes of the sum": (lambda b, x: _softmax(b, x, -1, 1), ""),
    "two axes": (lambda b, x: _softmax(b, x, [1, 2]), "Softmax: it is over 2 axes"),
    "no maximum, which overflows": (_without_maximum, ""),
    "exponentials that are read elsewhere": (_exponentials_read_elsewhere, "Softmax: a value inside is read elsewhere"),
    "the square of eps is too small": (lambda b, x: _normalized(b, x, 1e-30), "NormalizeL2: eps 1e-30 is too small for the square of float32"),
}  # fmt: skip


@pytest.mark.parametrize("name", LEFT)
def test_left_alone(name: str) -> None:
    build, reason = LEFT[name]
    model = _model(build)
    assert planned_types(model, PASS) == planned_types(model, "none")
    assert reasons(model, PASS) == ([reason] if reason else [])


def test_a_mean_of_an_unknown_number_of_elements() -> None:
    model = _model(_rms, (2, irexec.Dim()))
    assert reasons(model, PASS) == ["root mean square: the number of elements of a mean is not known"]
    agrees(model, 2e-6)
