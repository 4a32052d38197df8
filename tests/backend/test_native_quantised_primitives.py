"""QuantizeLinear and DequantizeLinear written in primitives: their levels, products of integers, and what stays as it is."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import irexec
from irexec.analysis.builder import Builder
from irexec.dtypes.elements import F32, U8
from irexec.ir.graph import Value
from irexec.native.library import library

pytestmark = pytest.mark.skipif(library() is None, reason="the C library is not built")

_FIRST = {"u8": 0, "i8": -128}


@dataclass
class Primitives:
    """Layers of one type of integers, with a step and a zero point."""

    element: str = "u8"
    zero: int = 3
    step: float = 0.1
    builder: Builder = field(default_factory=lambda: Builder("m"))
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(7))

    def quantised(self, x: Value, step: float | None = None, limits: tuple[float, float] | None = None) -> Value:
        b, first = self.builder, _FIRST[self.element]
        x = b.emit("Round", b.emit("Divide", x, np.float32(step or self.step)), mode="half_to_even")
        if self.zero:
            x = b.emit("Add", x, np.float32(self.zero))
        low, high = limits or (first, first + 255)
        return b.emit("Convert", b.emit("Clamp", x, min=float(low), max=float(high)), destination_type=self.element)

    def dequantised(self, levels: Value, step: float | None = None) -> Value:
        b = self.builder
        x = b.emit("Convert", levels, destination_type="f32")
        if self.zero:
            x = b.emit("Subtract", x, np.float32(self.zero))
        return b.emit("Multiply", x, np.float32(step or self.step))

    def both(self, x: Value, step: float | None = None) -> Value:
        return self.dequantised(self.quantised(x, step), step)

    def convolution(self, x: Value, inputs: int, outputs: int, groups: int = 1, least: float = 0.0) -> Value:
        """Weights of i8 with a zero point of their own and a step of each channel; for groups they are reshaped."""
        b, shape = self.builder, (outputs, inputs // groups, 3, 3)
        stored = b.constant(self.rng.integers(-60, 60, shape).astype(np.int8))
        if least:
            step = self.rng.uniform(least, 0.1, (outputs, 1, 1, 1)).astype(np.float32)
            whole = b.emit("Divide", b.constant(self.rng.normal(size=shape).astype(np.float32)), step)
            whole = b.emit("Clamp", b.emit("Round", whole, mode="half_to_even"), min=-128.0, max=127.0)
            stored = b.emit("Convert", whole, destination_type="i8")
        whole = b.emit("Subtract", b.emit("Convert", stored, destination_type="f32"), np.float32(2))
        scale = self.rng.uniform(0.001, 0.01, (outputs, 1, 1, 1)).astype(np.float32)
        weights = b.emit("Multiply", whole, scale)
        if groups > 1:
            weights = b.emit("Reshape", weights, np.array([groups, outputs // groups, *shape[1:]]), special_zero=False)
        type = "GroupConvolution" if groups > 1 else "Convolution"
        ones: dict[str, Any] = dict.fromkeys(("strides", "dilations", "pads_begin", "pads_end"), (1, 1))
        bias = self.rng.normal(size=(1, outputs, 1, 1)).astype(np.float32)
        return b.emit("Add", b.emit(type, x, weights, **ones), bias)

    def types(self, data: np.ndarray, atol: float) -> list[str]:
        """Compare with the reference kernels; the types of the steps."""
        model = self.builder.model()
        compiled, reference = irexec.compile_model(model, threads=2), irexec.compile_model(model, optimize=False)
        for (name, result), expected in zip(
            compiled({"x": data}).items(), reference({"x": data}).values(), strict=True
        ):
            np.testing.assert_allclose(result, expected, atol=atol, err_msg=str(name))
        plan = compiled.program.plan((data.shape,), None)
        return [step.report.operation for step in plan.steps]


@pytest.mark.parametrize("element", ["u8", "i8"])
@pytest.mark.parametrize("zero", [0, 3, 100, -1])
@pytest.mark.parametrize("step", [0.1, 0.25, 1.0, 0.007])
def test_levels_are_those_of_the_primitives(element: str, zero: int, step: float) -> None:
    """Halves are rounded before an odd zero point is added; limits, infinities and values far outside."""
    if element == "u8" and zero < 0:
        zero = 255
    p = Primitives(element, zero, step)
    x = p.builder.parameter(F32, (3, 1000), "x")
    p.builder.result(p.both(x))
    halves = (np.arange(-500, 500) / 2).astype(np.float32) * np.float32(step)
    data = np.stack([halves, np.nextafter(halves, np.float32(np.inf)), halves / 7])
    data[2, :4] = np.inf, -np.inf, 1e30, -1e30
    assert "Quantize" in "".join(p.types(data, 0))


@pytest.mark.parametrize("element, zero", [("u8", 0), ("u8", 131), ("i8", 0), ("i8", -7)])
def test_layers_between_them_are_products_of_integers(element: str, zero: int) -> None:
    """A convolution, a depthwise one, a residual, a pool that keeps the levels, and a matrix."""
    p = Primitives(element, zero, 0.05)
    b = p.builder
    x = p.both(b.parameter(F32, (1, 4, 9, 9), "x"))
    y = p.both(b.emit("Relu", p.convolution(x, 4, 16)), 0.07)
    z = p.both(b.emit("Add", p.both(p.convolution(y, 16, 16, 16), 0.03), y), 0.06)
    pool = {"kernel": (2, 2), "strides": (1, 1), "pads_begin": (0, 0), "pads_end": (0, 0)}
    z = p.both(b.emit("MaxPool", z, version="opset1", **pool), 0.06)
    b.result(p.both(p.convolution(z, 16, 8), 0.2))
    data = p.rng.normal(size=(1, 4, 9, 9)).astype(np.float32) * 2
    # A value on the threshold between two levels may get the other one.
    found = p.types(data, 0.2 * 1.01)
    products = [type for type in found if "Convolution" in type]
    assert len(products) == 3 and all(type.startswith("Integer") for type in products), found
    assert "MaxPool" in found, "the levels of a pool are not made again"
    assert sum("Quantize" in type for type in found) == 4, found
    assert any("GroupConvolution" in type and "AddLevels" in type for type in found), "a residual is added at the end"


def test_what_has_another_form_stays_as_it_is() -> None:
    """Limits of fewer bits, and integers of i8 that the model gives out."""
    for form in ("limits", "result"):
        p = Primitives("i8", 0)
        levels = p.quantised(p.builder.parameter(F32, (1, 4, 5, 5), "x"), limits=(-7, 7) if form == "limits" else None)
        p.builder.result(p.convolution(p.dequantised(levels), 4, 8))
        if form == "result":
            p.builder.result(levels)
        found = p.types(p.rng.normal(size=(1, 4, 5, 5)).astype(np.float32), 1e-5)
        assert not any("Quantize" in type or type.startswith("Integer") for type in found), found


@pytest.mark.parametrize("groups", [1, 4])
@pytest.mark.parametrize("least", [0.05, 0.001])
def test_weights_that_are_rounded_in_the_model(groups: int, least: float) -> None:
    """As models for TensorRT have them: QuantizeLinear of a constant in f32, with a step of each channel. With small steps there
    is a weight of -128, which does not fit 8 bits minus its zero point."""
    p = Primitives("i8", 0)
    x = p.both(p.builder.parameter(F32, (1, 4, 6, 6), "x"))
    p.builder.result(p.convolution(x, 4, 8, groups, least))
    found = p.types(p.rng.normal(size=(1, 4, 6, 6)).astype(np.float32), 1e-4)
    assert any(type.startswith("Integer") for type in found) == (least == 0.05), found


@pytest.mark.parametrize("element, channels, groups", [("u8", 40, 1), ("u8", 16, 1), ("i8", 40, 1), ("u8", 80, 2)])
def test_sums_of_integers_without_a_step(element: str, channels: int, groups: int) -> None:
    """As QLinearConv is written: integers minus zero points, in f64 where f32 does not hold the sums, then scaled. Sums in
    f64 that something else reads stay so."""
    for read in (False, True):
        p = Primitives(element, 7, 0.05)
        b, kind = p.builder, "f64" if channels // groups * 9 > 258 else "f32"
        wide = np.float64 if kind == "f64" else np.float32

        def centred(levels: Value, zero: Any, to: str = kind) -> Value:
            return b.emit("Subtract", b.emit("Convert", levels, destination_type=to), zero)  # noqa: B023

        x = b.emit("Relu", b.parameter(F32, (1, channels, 6, 6), "x"))
        stored = b.constant(p.rng.integers(-100, 100, (8, channels // groups, 3, 3)).astype(np.int8))
        zeros = b.emit("Unsqueeze", b.constant(p.rng.integers(-3, 4, 8).astype(np.int8)), np.array([1, 2, 3]))
        weights = centred(stored, b.emit("Convert", zeros, destination_type=kind))
        if groups > 1:
            shape = np.array([groups, 8 // groups, channels // groups, 3, 3])
            weights = b.emit("Reshape", weights, shape, special_zero=False)
        ones: dict[str, Any] = dict.fromkeys(("strides", "dilations", "pads_begin", "pads_end"), (1, 1))
        type = "GroupConvolution" if groups > 1 else "Convolution"
        sums = b.emit(type, centred(p.quantised(x), wide(7)), weights, **ones)
        bias = b.constant(p.rng.integers(-30000, 30000, (1, 8, 1, 1)).astype(np.int32))
        y = b.emit("Add", sums, b.emit("Convert", bias, destination_type=kind))
        y = b.emit("Convert", y, destination_type="f32") if kind == "f64" else y
        b.result(p.both(b.emit("Multiply", y, np.float32(1e-4)), 0.1))
        if read:
            b.result(sums)
        found = p.types(p.rng.normal(size=(1, channels, 6, 6)).astype(np.float32), 0.101)
        assert any(one.startswith("Integer") for one in found) != (read and kind == "f64"), found


def test_bytes_of_an_input_are_levels() -> None:
    """An image of u8 needs no QuantizeLinear."""
    p = Primitives("u8", 128, 0.02)
    x = p.builder.parameter(U8, (1, 3, 8, 8), "x")
    p.builder.result(p.convolution(p.dequantised(x), 3, 8))
    found = p.types(p.rng.integers(0, 256, (1, 3, 8, 8)).astype(np.uint8), 1e-5)
    assert any(type.startswith("IntegerConvolution") for type in found), found


def test_a_nan_becomes_what_the_primitives_make_of_it() -> None:
    p = Primitives("u8", 5)
    p.builder.result(p.convolution(p.both(p.builder.parameter(F32, (1, 4, 5, 5), "x")), 4, 8))
    data = np.ones((1, 4, 5, 5), np.float32)
    data[0, 1, 2, 3] = np.nan
    p.types(data, 1e-5)
