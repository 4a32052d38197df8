"""Layers that OpenVINO refuses are findings, although shape inference accepts them."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irexec
from irexec import Tensor, opset
from irexec.io import write_text
from irexec.testing import Case, case, random, typed
from tests.support.one_operation import one_operation


def _parts(shape: str) -> irexec.Model:
    x, lengths = opset.parameter([4], "f32", name="x"), opset.parameter(shape, "i64", name="lengths")
    parts = opset.variadic_split(x, np.int64(0), lengths)
    return irexec.Model([parts if isinstance(parts, Tensor) else parts[0]], [x, lengths])


def _transform(element: str) -> irexec.Model:
    x = opset.parameter([4, 2], element, name="x")
    return irexec.Model([opset.dft(x, np.array([0], np.int64))], [x])


def _mapped(mode: str) -> irexec.Model:
    x = opset.parameter([3], "f32", name="x")
    axes = np.array([1 if mode == "explicit" else 0], np.int64)
    return irexec.Model([opset.broadcast(x, np.array([2, 3], np.int64), axes, mode=mode)], [x])


@pytest.mark.parametrize(
    ("make", "argument", "message"),
    [
        (_mapped, "explicit", None),
        (_mapped, "numpy", "axes_mapping is given, though mode is not explicit"),
        (_transform, "f16", None),
        (_transform, "f64", "data is f64, expected bf16, f16 or f32"),
        (_parts, "2", None),
        (_parts, "?", "the length of split_lengths, and so the number of outputs, is not known"),
    ],
)
def test_layers_that_openvino_refuses(make: Any, argument: Any, message: str | None) -> None:
    model = make("2" if make is _parts else argument)
    if argument == "?":
        model.reshape({"lengths": "?"})
    assert [finding.message for finding in irexec.validate(model)] == [message] * (message is not None)
    ov = pytest.importorskip("openvino")
    text, weights = write_text(model)
    with pytest.raises(RuntimeError) if message else nullcontext():
        ov.Core().read_model(text, ov.Tensor(np.frombuffer(bytes(weights), np.uint8)))


_IMAGE = random("f32", 1, 2, 3, 3)
_NEAREST = {"mode": "nearest", "nearest_mode": "floor"}
_BY_SIZES, _BY_SCALES = ({"shape_calculation_mode": mode, **_NEAREST} for mode in ("sizes", "scales"))


def _blocks(type: str, *elements: str) -> Case:
    data = random("f32", 4, 2, 2) if type == "BatchToSpace" else random("f32", 1, 4, 4)
    values = ([1, 2, 2], [0, 0, 0], [0, 0, 0])
    return case(type, 2, data, *map(typed, elements, values), id=f"{type} {' '.join(elements)}")


def _columns(*elements: str) -> Case:
    sizes = map(typed, elements, ([4, 4], [2, 2]))
    attributes = {"strides": "1,1", "dilations": "1,1", "pads_begin": "0,0", "pads_end": "0,0"}
    return case("Col2Im", 15, random("f32", 1, 4, 9), *sizes, id=f"Col2Im {' '.join(elements)}", **attributes)


def _largest(since: int, element: str) -> Case:
    k = typed(element, 1)
    return case("TopK", since, random("f32", 2, 5), k, id=f"TopK-{since} {element}", axis="1", mode="max", sort="value")


def _resized_4(sizes: str, scales: str, axes: str) -> Case:
    inputs = typed(sizes, [6, 6]), typed(scales, [2, 2]), typed(axes, [2, 3])
    return case("Interpolate", 4, _IMAGE, *inputs, id=f"Interpolate-4 {sizes} {scales} {axes}", **_BY_SIZES)


def _resized_11(given: str, axes: str = "i64") -> Case:
    by, values = (_BY_SCALES, [2, 2]) if given.startswith(("f", "b")) else (_BY_SIZES, [6, 6])
    return case(
        "Interpolate", 11, _IMAGE, typed(given, values), typed(axes, [2, 3]), id=f"Interpolate-11 {given} {axes}", **by
    )


_SIZES = "expected i32, i64, u32 or u64"
_SCALES = "expected f32, f16 or bf16"


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (_blocks("BatchToSpace", "i32", "i32", "i32"), None),
        (
            _blocks("BatchToSpace", "i64", "i64", "i32"),
            "block_shape is i64, crops_begin is i64, crops_end is i32, expected one element type",
        ),
        (_blocks("SpaceToBatch", "i64", "i64", "i32"), None),
        (_columns("i32", "i32"), None),
        (_columns("i32", "i64"), "output_size is i32, kernel_size is i64, expected one element type"),
        *((_largest(1, element), None) for element in ("i8", "i32", "i64")),
        *((_largest(1, one), f"k has element type {one}, expected i8, i32 or i64") for one in ("u8", "i16", "u64")),
        *((_largest(since, "u16"), None) for since in (3, 11)),
        (_resized_4("u64", "bf16", "u32"), None),
        (_resized_4("u8", "f32", "i64"), f"output_shape has element type u8, {_SIZES}"),
        (_resized_4("i64", "f64", "i64"), f"scales has element type f64, {_SCALES}"),
        (_resized_4("i64", "f32", "i8"), f"axes has element type i8, {_SIZES}"),
        *((_resized_11(given), None) for given in ("i32", "u64", "f16", "f32")),
        (_resized_11("i4"), f"scales_or_sizes has element type i4, {_SIZES}"),
        (_resized_11("i16"), f"scales_or_sizes has element type i16, {_SIZES}"),
        (_resized_11("f64"), f"scales_or_sizes has element type f64, {_SCALES}"),
        (_resized_11("i64", "u16"), f"axes has element type u16, {_SIZES}"),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_element_types_that_openvino_refuses(row: Case, message: str | None, tmp_path: Path) -> None:
    path = tmp_path / "m.xml"
    one_operation(row, {0: row.inputs[0].array.shape}).text.write(path)
    found = irexec.validate(irexec.read_model(path))
    assert [one.message.split("; inputs")[0] for one in found if one.code == "IR107"] == [message] * (
        message is not None
    )
    ov = pytest.importorskip("openvino")
    with pytest.raises(RuntimeError) if message else nullcontext():
        ov.Core().read_model(path)
