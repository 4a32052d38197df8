"""Models in the operations of an older release: every rewrite computes the rows of its operation."""

from __future__ import annotations

import cProfile
import pstats
from collections import Counter
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from irexec import Model, opset
from irexec.analysis.builder import Builder, packed
from irexec.analysis.portability.releases import OPSETS, Release, first_release
from irexec.analysis.shape_inference import ShapeInference
from irexec.authoring.downgrade import downgrade
from irexec.authoring.downgrade.layer import RESPELLINGS, REWRITES
from irexec.authoring.tensor import Tensor
from irexec.dtypes.elements import element as element_named
from irexec.errors import ConversionError, IrexecError
from irexec.ir.constants import constant_value
from irexec.ir.dims import Dim
from irexec.ir.graph import Body, Node
from irexec.runtime.compiled_model import CompiledModel
from irexec.schema.registry import opset_number, resolve
from irexec.testing import Case
from irexec.testing.rows import model_of
from irexec.tools.downgrading import verify_rewriting
from tests.support.cases import families
from tests.support.tiers import some, spread

_CASES: dict[tuple[str, int | str], list[Case]] = {}
for _rows in families().values():
    for _row in _rows:
        if isinstance(_row, Case):
            _CASES.setdefault((_row.type, _row.since), []).append(_row)


_COUNTS = pytest.mark.parametrize("count", some([12, 1000], [12]))
"""About how many rows of an operation are written, of each of its versions."""

_WINDOWS = {"strides": [1, 1], "pads_begin": [0, 0], "pads_end": [0, 0], "dilations": [1, 1]}
_MAXIMA = {"pooled_h": 2, "pooled_w": 2, "sampling_ratio": 2, "spatial_scale": 1.0, "mode": "max"}


def _before(release: Release) -> Release:
    """The newest release that is older."""
    known = {*OPSETS.values(), Release(2023, 3), Release(2024, 2), Release(2024, 6), Release(2025, 4)}
    return max((one for one in known if one < release), default=Release(2020, 1))


def _results(model: Model, inputs: list[np.ndarray]) -> list[np.ndarray]:
    given = [x.astype(p.element.carrier) if p.element else x for x, p in zip(inputs, model.inputs, strict=True)]
    found = CompiledModel(model)(given)
    return [np.asarray(found[i]) for i in range(len(found))]


@pytest.mark.parametrize(("type", "since"), sorted(REWRITES))
@_COUNTS
@pytest.mark.sampled(16)
def test_a_rewrite_computes_the_same(type: str, since: int, count: int) -> None:
    """In the release before the first that has the version; version 10 gives fewer types, so that values are compared."""
    first = first_release(type, since)
    release = _before(first) if first is not None else Release(2026, 4)
    written, reasons = 0, set()
    for row in spread(_CASES[type, since], count):
        if any(x.element.name == "string" for x in row.inputs):
            continue
        for model, inputs in _models(row):
            found = downgrade(model, str(release))
            reasons |= {finding.code for finding in found.findings}
            if found.findings:
                continue
            # Constants are folded for releases before 2022.1.
            written += bool(found.changes)
            assert all(_is_in(node.type, node.version, release) for node in found.model.walk()), row.id
            _check_same(row, model, found.model, inputs)
    # Releases before 2022.1 run no shapes that depend on values.
    assert written or "IR906" in reasons, "no row is rewritten"


def _check_same(row: Case, model: Model, written: Model, inputs: list[np.ndarray]) -> None:
    tolerance = max({"f16": 1e-2, "bf16": 5e-2}.get(x.element.name, 1e-4) for x in row.inputs)
    for a, b in zip(_results(model, inputs), _results(written, inputs), strict=True):
        assert a.shape == b.shape, row.id
        with np.errstate(over="ignore"):
            given = np.float64(a.astype(b.dtype))
        np.testing.assert_allclose(np.float64(b), given, tolerance, tolerance, err_msg=row.id)


_OF_OTHER_INPUTS = {"Concat", "Eye", "BitwiseLeftShift", "BitwiseRightShift", "Split", "VariadicSplit"}
"""Types whose other forms no row with inputs, or with constants after the first input, brings about in these releases."""


@pytest.mark.parametrize("type", sorted(RESPELLINGS.keys() - _OF_OTHER_INPUTS))
@_COUNTS
@pytest.mark.sampled(16)
def test_another_form_computes_the_same(type: str, count: int) -> None:
    changed = 0
    of_type = [rows for (name, _), rows in _CASES.items() if name == type]
    drawn = [row for rows in of_type for row in spread(rows, count)]
    # Where none of those drawn is written in another form, the first that is.
    for i, row in enumerate([*drawn, *(row for rows in of_type for row in rows)]):
        if i >= len(drawn) and changed:
            break
        is_of_bf16 = any(x.element.name == "bf16" for x in row.inputs)
        for release in ("2022.3" if is_of_bf16 else "2021.4", "2023.3"):
            for model, inputs in _models(row):
                found = downgrade(model, release)
                if not found.findings and found.changes:
                    changed += 1
                    _check_same(row, model, found.model, inputs)
    assert changed, "no row is written in another form"


@pytest.mark.parametrize(
    ("shape", "constant_first", "changes"), [([1, 3, 2], True, 1), ([2, 3, 2], True, 0), ([1, 3, 2], False, 0)]
)
def test_a_constant_is_not_the_first_input_of_a_concat_along_axis_1(
    shape: list[int], constant_first: bool, changes: int
) -> None:
    """The plugin of 2021.4 writes over it where the batch is 1: a class token before the patches of an image."""
    builder = Builder("m")
    x, token = builder.parameter("f32", shape, "x"), np.full([shape[0], 1, 2], 7, np.float32)
    joined = (token, x) if constant_first else (x, token)
    builder.result(builder.emit("Concat", *joined, version=1, axis=1))
    model = builder.model()
    found = downgrade(model, "2021.4")
    assert len(found.changes) == changes
    assert not downgrade(model, "2022.1").changes
    data = np.arange(float(np.prod(shape)), dtype=np.float32).reshape(shape)
    np.testing.assert_array_equal(
        _results(found.model, [data])[0], np.concatenate([np.asarray(y) if y is token else data for y in joined], 1)
    )


def test_an_overlap_that_is_the_threshold_stays() -> None:
    """Plugins up to 2024.6 suppress it: the threshold becomes the next larger number."""
    builder = Builder("m")
    boxes, scores = builder.parameter("f32", [1, 4, 4], "boxes"), builder.parameter("f32", [1, 1, 4], "scores")
    threshold = np.array(0.5, np.float32)
    builder.result(builder.emit("NonMaxSuppression", boxes, scores, 3, threshold, version=5)[0])
    (layer,) = [node for node in downgrade(builder.model(), "2023.3").model.nodes if node.type == "NonMaxSuppression"]
    written = layer.inputs[3]
    assert written is not None and written.node.constant is not None
    assert constant_value(written.node.constant) == np.nextafter(threshold, np.float32(1))


def test_older_versions_get_the_form_that_the_release_takes() -> None:
    """Interpolate-11 becomes Interpolate-4, whose axes are not counted from the end."""
    builder = Builder("m")
    x = builder.parameter("f32", [1, 1, 2, 2], "x")
    attributes = {"mode": "nearest", "shape_calculation_mode": "sizes"}
    builder.result(builder.emit("Interpolate", x, [4, 4], np.array([-2, -1], np.int64), version=11, **attributes))
    (layer,) = [node for node in downgrade(builder.model(), "2022.3").model.nodes if node.type == "Interpolate"]
    axes = layer.inputs[3]
    assert axes is not None and axes.node.constant is not None
    assert layer.version == "opset4" and constant_value(axes.node.constant).tolist() == [2, 3]


def test_names_are_unique_and_known_values_are_constants_in_old_releases() -> None:
    builder = Builder("m")
    x = builder.parameter("f32", [2, 3], "x")
    twice = builder.emit("Relu", builder.emit("Relu", x, version=1, name="a"), version=1, name="b")
    size = builder.emit("ShapeOf", x, version=3)
    builder.result(builder.emit("Reshape", twice, builder.emit("Add", size, [0, 0], version=1), special_zero=False))
    model = builder.model()
    model["b"].name = "a"
    found = downgrade(model, "2021.4")
    assert not found.findings
    assert len({node.name for node in found.model.nodes}) == len(found.model.nodes)
    assert not [node for node in found.model.nodes if node.type == "ShapeOf"]


@pytest.mark.parametrize(
    ("type", "version", "attributes", "says"),
    [
        ("Einsum", 7, {"equation": "ii->i"}, "a label twice"),
        ("ReduceSum", 1, {"keep_dims": False}, "only if its inputs 1 are constants"),
    ],
)
def test_layers_that_the_plugin_does_not_run_are_named(
    type: str, version: int, attributes: dict[str, object], says: str
) -> None:
    builder = Builder("m")
    operands = [builder.parameter("f32", [3, 3], "x")]
    if type == "ReduceSum":
        operands.append(builder.parameter("i64", [2], "axes"))
    builder.result(builder.emit(type, *operands, version=version, **attributes))
    found = downgrade(builder.model(), "2021.4").findings
    assert {finding.code for finding in found} == {"IR906"}
    assert any(says in finding.message for finding in found)


def test_other_values_of_a_release_are_remarks() -> None:
    """The plugin of 2021.4 reads other elements for negative indices; constants are counted from the front."""
    for indices, code in (("x", "IR907"), ([[-1, 0]], None)):
        builder = Builder("m")
        data = builder.parameter("f32", [2, 3], "data")
        given = builder.parameter("i64", [1, 2], "x") if indices == "x" else np.array(indices, np.int64)
        builder.result(builder.emit("GatherND", data, given, version=5))
        found = downgrade(builder.model(), "2021.4")
        assert not found.findings
        assert [remark.code for remark in found.remarks] == ([code] if code else [])


@pytest.mark.parametrize(
    ("shape", "condition", "is_said"), [("?,8", "computed", True), ("2,8", "computed", False), ("?,8", True, False)]
)
def test_a_choice_in_open_sizes_is_a_remark(shape: str, condition: object, is_said: bool) -> None:
    """Plugins up to 2024.6 give the branch that ran first: for c of 1, -1 and 1, x + y each time, not x - y once."""

    def branch(operation: Callable[..., Tensor]) -> Body:
        x, y = (opset.parameter(shape, "f32", name) for name in "xy")
        result = opset.result(operation(x, y))
        return opset.body([result], [x, y], inputs=[(1, x), (2, y)], outputs=[(3, result)])

    x, y = (opset.parameter(shape, "f32", name) for name in "xy")
    c = opset.parameter([], "f32", "c")
    chosen = opset.greater(c, 0.0) if condition == "computed" else opset.constant(condition, "boolean")
    bodies = {"then_body": branch(opset.add), "else_body": branch(opset.subtract)}
    (made,) = opset.layer("If", "opset8", [chosen, x, y], {}, [f"f32[{shape}]"], name="choice", bodies=bodies)
    found = downgrade(Model([opset.result(made)], [x, y, c]), "2023.3")
    assert not found.findings
    assert [one.layer_name for one in found.remarks if "took first" in one.message] == (["choice"] if is_said else [])


def test_half_of_a_known_size_is_not_a_remark() -> None:
    """All releases divide it as it is; integers that are not known may be beyond i32."""
    for shape, names in (([2, 8], []), (["?", 8], ["half"])):
        data = opset.parameter(shape, "f32", "data")
        halves = opset.divide(opset.shape_of(data, output_type="i32"), opset.constant(2, "i32"), name="half")
        assert [one.layer_name for one in downgrade(Model([opset.result(halves)], [data]), "2022.3").remarks] == names


_POOLING = {
    "kernel": [2, 2], "strides": [3, 3], "pads_begin": [0, 0], "pads_end": [1, 1], "exclude_pad": True,
    "rounding_type": "ceil",
}  # fmt: skip
"""Windows at 0, 3 and 6, of which the last one has no element; OpenVINO 2021.4.2 ends with a segmentation fault."""


@pytest.mark.parametrize(
    ("type", "version", "shapes", "attributes", "says"),
    [
        ("Einsum", 7, {"a": "f32 2,1", "b": "f32 3,4"}, {"equation": "ij,jk->ik"}, "stretch"),
        ("Interpolate", 4, {"x": "i32 1,2,4,4"}, {}, "Interpolate of i32"),
        ("Convolution", 1, {"x": "i8 1,2,4,4", "w": "i8 2,2,1,1"}, _WINDOWS, "Convolution of i8"),
        ("AvgPool", 1, {"x": "f32 1,1,5,5"}, _POOLING, "lies in the padding"),
    ],
)
def test_what_the_plugin_of_2021_refuses(type: str, version: int, shapes: dict, attributes: dict, says: str) -> None:
    builder = Builder("m")
    operands = []
    for name, text in shapes.items():
        element, shape = text.split()
        operands.append(builder.parameter(element, [int(size) for size in shape.split(",")], name))
    if type == "Interpolate":
        operands += [[8, 8], np.array([2.0, 2.0], np.float32), [2, 3]]
        attributes = {"mode": "nearest", "shape_calculation_mode": "sizes"}
    builder.result(builder.emit(type, *operands, version=version, **attributes))
    (finding,) = downgrade(builder.model(), "2021.4").findings
    assert finding.code == "IR906" and says in finding.message


@pytest.mark.parametrize(
    ("type", "version", "shapes", "attributes", "says"),
    [
        ("ROIAlign", 3, {"x": "f32 1,2,8,8", "rois": "f32 1,4", "i": "i32 1"}, _MAXIMA, "other maxima"),
        ("TopK", 3, {"x": "f32 3", "k": "i64"}, {"axis": 0, "mode": "max", "sort": "value"}, "for a k of 0"),
        ("Select", 1, {"c": "boolean 2", "x": "i64 2", "y": "i64 2"}, {}, "beyond the range of i32"),
        ("NormalizeL2", 1, {"x": "f32", "axes": "i64 0"}, {"eps": 1.0, "eps_mode": "add"}, "adds eps"),
        ("Tile", 1, {"x": "f32 2", "repeats": "i64 0"}, {}, "without repeats"),
        ("NonMaxSuppression", 5, {"b": "f32 1,4,4", "s": "f32 1,1,4", "n": "i64", "t": "f32"}, {}, "is the threshold"),
        ("MatMul", 1, {"x": "f32 2,0", "y": "f32 0,3"}, {}, "without elements"),
    ],
)
def test_what_the_plugin_of_2023_computes_otherwise(
    type: str, version: int, shapes: dict, attributes: dict, says: str
) -> None:
    builder = Builder("m")
    operands = []
    for name, text in shapes.items():
        element, _, sizes = text.partition(" ")
        operands.append(builder.parameter(element, [int(size) for size in sizes.split(",") if size], name))
    found = builder.emit(type, *operands, version=version, **attributes)
    builder.result(found[0] if isinstance(found, tuple) else found)
    remarks = downgrade(builder.model(), "2021.4" if type == "ROIAlign" else "2023.3").remarks
    assert [one.code for one in remarks if says in one.message] == ["IR907"]


@pytest.mark.parametrize(("release", "count"), [("2022.3", 1), ("2023.3", 0), ("2024.6", 0)])
def test_one_axis_that_is_computed_is_squeezed_from_2023_3_on(release: str, count: int) -> None:
    builder = Builder("m")
    x, axis = builder.parameter("f32", [2, 1, 3], "x"), builder.parameter("i64", [1], "axis")
    builder.result(builder.emit("Squeeze", x, axis, version=1))
    found = downgrade(builder.model(), release).findings
    assert len([one for one in found if "only if its inputs 1" in one.message]) == count


def _models(row: Case) -> Iterator[tuple[Model, list[np.ndarray]]]:
    """The row with and without constants, and with its first output alone."""
    for constants in (None, 1, 0) if len(row.inputs) > 1 else (None, 0):
        try:
            model, inputs = model_of(row, constants)
        except IrexecError:
            continue
        yield model, inputs
        if len(model.results) > 1:
            first = model.clone()
            first.nodes = [node for node in first.nodes if node not in first.results[1:]]
            yield first, inputs


def _is_in(type: str, version: str, release: Release) -> bool:
    first = first_release(type, int(resolve(type, version).since))
    written = opset_number(version)
    return first is not None and first <= release and written is not None and OPSETS[written] <= release


def _model() -> Model:
    builder = Builder("m")
    x = builder.parameter("f32", [2, 6, 4], "x")
    y = builder.emit("Softmax", x, version=8, axis=-1, name="soft")
    values, indices = builder.emit("TopK", y, 3, version=11, axis=2, mode="max", sort="value", stable=True, name="top")
    builder.result(values)
    builder.result(indices)
    builder.result(builder.emit("Relu", y, version=1, name="y"))
    builder.result(builder.emit("IsNaN", values, version=10, name="z"))
    return builder.model()


def test_every_layer_that_a_release_lacks_is_named() -> None:
    found = downgrade(_model(), "2021.4")
    assert [(one.layer, one.operation, one.into) for one in found.changes] == [
        ("soft", "Softmax-8", ("Softmax-1",)),
        ("z", "IsNaN-10", ("NotEqual-1",)),
    ]
    assert [(one.code, one.layer_name, one.message) for one in found.findings] == [
        ("IR905", "top", "OpenVINO 2021.4 does not have TopK-11: no older version is stable")
    ]
    with pytest.raises(
        ConversionError, match=r"written for OpenVINO 2021.4: layer 3 'top' \(TopK\): OpenVINO 2021.4 does"
    ):
        found.require()


def test_the_version_of_ir_and_the_opsets_are_those_of_the_release() -> None:
    builder = Builder("m")
    x = builder.parameter("f32", [2], "x")
    builder.result(builder.emit("Relu", x, name="y"))
    model = builder.model()
    model["y"].version = "opset14"
    found = downgrade(model, "2021.4")
    assert not found.findings
    assert (found.model.version, found.model["y"].version) == (10, "opset1")
    assert (model.version, model["y"].version) == (11, "opset14")
    assert downgrade(model, "2022.1").model.version == 11


def test_names_stay() -> None:
    builder = Builder("m")
    x = builder.parameter("f32", [2, 3], "x")
    builder.result(builder.emit("Softmax", x, version=8, axis=1, name="soft", names=["tensor"]))
    written = downgrade(builder.model(), "2021.4").model
    assert written["soft"].version == "opset1"
    assert written["soft"].outputs[0].names == ["tensor"]


def test_layers_of_bodies_are_rewritten() -> None:
    from irexec import opset

    x = opset.parameter([3, 4], "f32", "x")
    (y,) = opset.loop(lambda i, t: opset.Iteration([opset.softmax(t, axis=-1)]), [x], trip_count=3)
    model = Model([y], [x])
    found = downgrade(model, "2021.4")
    assert not found.findings
    assert [one.operation for one in found.changes] == ["Softmax-8"]
    data = np.arange(12, dtype=np.float32).reshape(3, 4)
    np.testing.assert_allclose(_results(found.model, [data])[0], _results(model, [data])[0], rtol=1e-6)


def test_an_input_that_is_an_output_is_verified() -> None:
    """In version 10 an input of f16 takes f32, and the output is named after another layer."""
    builder = Builder("m")
    builder.result(builder.emit("Identity", builder.parameter("f16", [2], "x"), version=16))
    model = builder.model()
    written = downgrade(model, "2021.4").model
    assert verify_rewriting(model, written, seed=0, rtol=1e-3, atol=1e-4).agrees


def test_compressed_weights_that_shapes_choose_are_not_rounded_to_f16() -> None:
    """A row of a table that is decompressed in f16: as a constant of f16 it would be rounded."""
    table = np.arange(-3, 3, dtype=np.int8).reshape(6, 1) * np.array([[7, 11, 13, 17]], np.int8)
    scale = np.float16(0.0123)
    x = opset.parameter([1, 4], "f32", name="x")
    weights = opset.multiply(opset.convert(opset.constant(table), destination_type="f16"), opset.constant(scale))
    row = opset.gather(opset.convert(weights, destination_type="f32"), opset.gather(opset.shape_of(x), [0], 0), 0)
    model = Model([opset.result(opset.add(x, row), name="r")], [x])

    found = downgrade(model, "2021.4").require().model
    ones = np.ones((1, 4), np.float32)
    expected = ones + table[1].astype(np.float32) * np.float32(scale)
    assert (expected != ones + (table[1] * scale).astype(np.float32)).any()
    np.testing.assert_array_equal(_results(found, [ones])[0], expected)


def test_an_is_inf_of_neither_sign_is_written() -> None:
    builder = Builder("m")
    x = builder.parameter("f32", [4], "x")
    builder.result(builder.emit("IsInf", x, version=10, detect_negative=False, detect_positive=False, name="y"))
    found = downgrade(builder.model(), "2021.4").require()
    (values,) = _results(found.model, [np.array([-np.inf, np.inf, np.nan, 0], np.float32)])
    assert not values.any()


@pytest.mark.parametrize("sizes", [[2, 4], ["?", "?"]])
@pytest.mark.parametrize(("mode", "best", "first"), [("max", [7, 2], [1, 3]), ("min", [5, 0], [0, 0])])
def test_the_first_of_equal_elements_is_found_without_a_stable_top_k(
    sizes: list[int | str], mode: str, best: list[int], first: list[int]
) -> None:
    builder = Builder("m")
    x = builder.parameter("f32", sizes, "x")
    values, indices = builder.emit("TopK", x, 1, axis=1, mode=mode, sort="value", stable=True, name="top")
    builder.result(values)
    builder.result(indices)
    found = downgrade(builder.model(), "2022.3").require()
    assert "ReduceMin-1" in found.changes[0].into
    given = np.array([[5, 7, 7, 5], [0, 1, 0, 2]], np.float32)
    results = _results(found.model, [given])
    np.testing.assert_array_equal(results[0].ravel(), best)
    np.testing.assert_array_equal(results[1].ravel(), first)


def test_the_order_of_equal_elements_does_not_matter_for_sorted_values() -> None:
    builder = Builder("m")
    x = builder.parameter("f32", [2, 4], "x")
    builder.result(builder.emit("TopK", x, 3, axis=1, mode="max", sort="value", stable=True, name="top")[0])
    assert downgrade(builder.model(), "2022.3").require().changes[0].into == ("TopK-3",)


@pytest.mark.parametrize(("size", "into"), [("?", ["StridedSlice-1"]), (2, [])])
def test_a_part_along_axis_0_is_a_slice_where_sizes_are_open(size: int | str, into: list[str]) -> None:
    """OpenVINO 2022.3 has no memory for the second part, which a Multiply of open size reads."""
    builder = Builder("m")
    x, k = builder.parameter("f32", [4, 2], "x"), builder.parameter("f32", [size, 2], "k")
    part = builder.emit("VariadicSplit", x, 0, [1, 3], name="parts")[1]
    builder.result(builder.emit("Multiply", builder.emit("ReduceSum", part, [0], keep_dims=True), k))
    found = downgrade(builder.model(), "2022.3").require()
    assert [name for change in found.changes for name in change.into] == into
    given = [np.arange(8, dtype=np.float32).reshape(4, 2), np.ones((2, 2), np.float32)]
    np.testing.assert_array_equal(_results(found.model, given)[0], [[12, 15]] * 2)


@pytest.mark.parametrize(("element", "wide"), [("u4", "u8"), ("i4", "i8")])
def test_constants_of_4_bits_are_bytes_before_2023_2(element: str, wide: str) -> None:
    """These releases take the upper half of a byte for the first element."""
    kind = element_named(element)
    values = np.array([1, -2 if kind.kind == "signed" else 14, 3], kind.carrier)
    builder = Builder("m")
    x = builder.parameter("f32", [3], "x")
    weights = builder.emit("Convert", builder.raw_constant(packed(values, kind)), destination_type="f32")
    builder.result(builder.emit("Add", x, weights))
    for release, written in (("2023.1", wide), ("2023.2", element)):
        found = downgrade(builder.model(), release).require()
        held = {str(node.constant.element) for node in found.model.nodes if node.constant is not None}
        assert held == {written}
        np.testing.assert_array_equal(_results(found.model, [np.zeros(3, np.float32)])[0], values)


@pytest.mark.parametrize("release", ["2021.4", "2022.3", "2023.3"])
@pytest.mark.parametrize(("element", "wrapped"), [("u4", [1, 9, 15, 0, 13, 2]), ("i4", [1, -7, -1, 0, -3, 2])])
def test_values_that_pass_through_4_bits_wrap(element: str, wrapped: list[int], release: str) -> None:
    """These plugins hold them in bytes, which do not wrap; the releases themselves give these values."""
    builder = Builder("m")
    narrow = builder.emit("Convert", builder.parameter("f32", [6], "x"), destination_type=element)
    for kind in ("f32", "boolean"):
        builder.result(builder.emit("Convert", narrow, destination_type=kind))
    found = downgrade(builder.model(), release).require()
    assert element not in {str(port.fact.element) for node in found.model.nodes for port in node.outputs if port.fact}
    given = np.array([1, 9, 15, 16, -3, 2.7], np.float32)
    numbers, truth = _results(found.model, [given])
    np.testing.assert_array_equal(numbers, wrapped)
    np.testing.assert_array_equal(truth, np.array(wrapped) != 0)


@pytest.mark.slow
def test_the_time_is_linear_in_the_number_of_layers() -> None:
    calls = []
    for count in (100, 400):
        builder = Builder("m")
        y = builder.parameter("f32", [2, 3], "x")
        for _ in range(count):
            y = builder.emit("Add", builder.emit("Gelu", y, approximation_mode="tanh"), [1.0, 2.0, 3.0])
        builder.result(y)
        model, profile = builder.model(), cProfile.Profile()
        profile.runcall(downgrade, model, "2021.4")
        calls.append(pstats.Stats(profile).total_calls)  # type: ignore[attr-defined]
    assert calls[1] < 4.2 * calls[0]


def test_sizes_are_inferred_twice_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the rewriting and after it; open sizes need no further runs."""
    inferred: Counter[Node] = Counter()
    infer = ShapeInference.node

    def counting(walk: ShapeInference, node: Node) -> None:
        inferred[node] += 1
        infer(walk, node)

    monkeypatch.setattr(ShapeInference, "node", counting)
    for attributes in ({"approximation_mode": "erf"}, {"approximation_mode": "tanh"}):
        builder = Builder("m")
        y = builder.emit("Relu", builder.parameter("f32", [Dim(), 3], "x"))
        builder.result(builder.emit("Gelu", y, **attributes))
        inferred.clear()
        downgrade(builder.model(), "2022.3")
        assert max(inferred.values()) <= 2
