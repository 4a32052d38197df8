"""Forms that old plugins compute right, remarks and refusals, by rows of the operations.

Source: the releases themselves (tests.release_sweep).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from irexec import Model, opset, read_model, validate
from irexec.analysis.builder import Builder, packed
from irexec.authoring.downgrade import Downgraded, downgrade
from irexec.dtypes.elements import element as element_named
from irexec.dtypes.elements import round_to
from irexec.ir.constants import constant_value
from irexec.ir.dims import Dim
from irexec.runtime.compiled_model import CompiledModel
from irexec.testing import Case
from irexec.testing.rows import model_of
from tests.support.cases import families
from tests.support.networks import unpacked

_ROWS = {
    (row.type, row.name): row for rows in families().values() for row in rows if isinstance(row, Case) and row.inputs
}


def _written(type: str, name: str, release: str, constants: int | None) -> tuple[Model, list[np.ndarray], Downgraded]:
    model, inputs = model_of(_ROWS[type, name], constants)
    return model, inputs, downgrade(model, release)


def _results(model: Model, inputs: list[np.ndarray]) -> list[np.ndarray]:
    found = CompiledModel(model)(inputs)
    return [np.asarray(found[i]) for i in range(len(found))]


@pytest.mark.parametrize(
    ("type", "name", "release", "constants", "into"),
    [
        ("Transpose", "empty order reverses", "2024.6", 1, "Transpose-1"),
        ("Transpose", "scalar", "2023.3", 1, "Maximum-1"),
        ("Identity", "scalar", "2021.4", None, "Maximum-1"),
        ("Squeeze", "scalar, axes [0]", "2022.3", 1, "Maximum-1"),
        ("Softmax", "scalar", "2023.3", None, "Reshape-1,Softmax-8,Reshape-1"),
        ("LogSoftmax", "scalar", "2021.4", None, "Reshape-1,LogSoftmax-5,Reshape-1"),
        ("DFT", "no axes", "2022.3", 1, ""),
        ("RDFT", "cut and left as it is", "2022.3", 1, "RDFT-9"),
        ("IRDFT", "cut and left as it is", "2023.3", 1, "IRDFT-9"),
        ("GatherND", "indices of nothing", "2021.4", 1, "Broadcast-1"),
        ("StridedSlice", "ellipsis of nothing", "2021.4", 1, "StridedSlice-1"),
        ("StridedSlice", "ellipsis and new axis", "2022.3", None, "Unsqueeze-1"),
        ("StridedSlice", "ellipsis and shrink", "2023.3", None, "StridedSlice-1"),
        ("StridedSlice", "new axis of a scalar", "2022.3", None, "Unsqueeze-1"),
        ("StridedSlice", "new axis", "2023.3", None, "Unsqueeze-1"),
        ("StridedSlice", "shrink all", "2022.3", None, "Gather-8,Gather-8"),
        ("ScatterElementsUpdate", "no indices", "2021.4", 1, ""),
        ("EmbeddingBagPackedSum", "empty bags", "2022.3", 1, "Broadcast-1"),
        ("Broadcast", "pdpd, more axes", "2022.3", 1, "Unsqueeze-1,Broadcast-1"),
        ("Eye", "f16", "2022.3", None, "Eye-9,Convert-1"),
        ("Gather", "below the range", "2022.3", 1, "Gather-8"),
        ("Clamp", "i64 open below", "2023.3", None, "Minimum-1"),
        ("Clamp", "i32 bounds rounded inwards", "2021.4", None, "Maximum-1,Minimum-1"),
        ("LRN", "channels of rank 3", "2024.6", 1, "LRN-1,Multiply-1"),
        ("ScatterNDUpdate", "one index, updates of one number", "2022.3", 1, "Unsqueeze-1,ScatterNDUpdate"),
        ("ScaledDotProductAttention", "sink for each row", "2023.3", None, "Exp-1,ReduceSum-1"),
        ("BitwiseRightShift", "pdpd", "2024.6", None, "BitwiseRightShift-15"),
        ("RegionYolo", "axes 2 to 1 are one", "2022.3", None, "RegionYolo-1,Reshape-1"),
        ("Reverse", "scalar", "2021.4", 1, "Maximum-1"),
        ("SoftSign", "bf16", "2022.3", None, "Convert-1,SoftSign-9,Convert-1"),
        ("Convert", "bf16 to boolean", "2022.3", None, "Convert-1,Convert-1"),
        ("MaxPool", "a window beside the data, bf16", "2023.3", None, "Maximum-1"),
        ("ReduceMean", "bf16", "2023.3", None, "Convert-1,ReduceMean-1,Convert-1"),
        ("FakeQuantize", "256 levels, in bf16", "2022.3", None, "FakeQuantize-1,Convert-1"),
        ("FakeConvert", "bf16", "2023.3", None, "FakeConvert-13,Convert-1"),
        ("MatrixNms", "sorted by none, across true, in bf16", "2023.3", 1, "MatrixNms-8"),
        ("FakeQuantize", "two levels", "2022.3", 1, "Greater-1,Select-1"),
        ("Broadcast", "bidirectional, target of no axes", "2023.3", None, ""),
        ("NonMaxSuppression", "threshold 0 keeps what does not overlap", "2022.3", None, "StridedSlice-1,StridedSlice-1"),
        ("NonMaxSuppression", "threshold 0 keeps what does not overlap", "2022.3", 1, "StridedSlice-1,StridedSlice-1"),
        ("MaxPool", "ceil_torch 1, 11, 1", "2022.3", None, "MaxPool-8"),
        ("AvgPool", "ceil_torch 1, 00, 1, exclude-pad false", "2021.4", None, "AvgPool-1"),
    ],
)  # fmt: skip
def test_a_form_that_the_plugin_computes_right(
    type: str, name: str, release: str, constants: int | None, into: str
) -> None:
    model, inputs, found = _written(type, name, release, constants)
    assert not found.findings
    (change,) = found.changes
    assert into in ",".join(change.into) and (into or not change.into)
    for a, b in zip(_results(model, inputs), _results(found.model, inputs), strict=True):
        assert a.shape == b.shape
        np.testing.assert_allclose(np.float64(b), np.float64(a), 1e-3, 1e-6)


@pytest.mark.parametrize(
    ("type", "name", "release", "constants", "says"),
    [
        ("Tan", "u32 rounded", "2023.3", None, "negative results of unsigned integers"),
        ("GridSample", "large numbers are copied", "2022.3", 1, "beyond the range of i32"),
        ("GridSample", "far beyond, reflection", "2023.3", 1, "far outside of the data"),
        ("GridSample", "far beyond, nearest, border", "2022.3", None, "far outside of the data"),
        ("NonZero", "scalar of 0", "2024.6", None, "[1, 0]"),
        ("OneHot", "no depth", "2022.3", None, "a depth of 0"),
        ("Reverse", "negative axes", "2022.3", None, "counted from the end"),
        ("ROIPooling", "bilinear, NaN", "2021.4", 1, "a box is NaN"),
        ("NMSRotated", "maximum 0", "2023.3", 1, "may select none"),
        ("NonMaxSuppression", "threshold 0 keeps what does not overlap", "2022.3", None, "overlap is the threshold"),
        ("Interpolate", "linear of bytes", "2023.3", 1, "to the even one"),
        ("BinaryConvolution", "2x2, with nothing along axis 0", "2023.3", 1, "without elements"),
        ("DetectionOutput", "no boxes", "2023.3", 1, "without elements"),
        ("SearchSorted", "no sequence, right false", "2024.6", None, "without elements"),
        ("ExperimentalDetectronPriorGridGenerator", "one cell", "2021.4", None, "unwritten"),
        ("Convert", "u64 to boolean", "2021.4", None, "beyond the range of i32"),
        ("Convert", "ties of f4e2m1", "2024.6", None, "half-way"),
        ("Broadcast", "to nothing", "2023.3", 1, "without elements"),
        ("ReduceLogicalOr", "of nothing", "2023.3", 1, "without elements"),
        ("IRDFT", "a single number leaves none", "2023.3", 1, "without elements"),
        ("ShapeOf", "scalar", "2023.3", None, "shape of a scalar"),
        ("MatrixNms", "nms_top_k 0", "2023.3", None, "an nms_top_k of 0"),
        ("GenerateProposals", "no point", "2023.3", 1, "without elements"),
        ("NMSRotated", "no boxes", "2023.3", 1, "without elements"),
        ("Unique", "u8 rows", "2023.3", 1, "8-bit integers"),
        ("EmbeddingBagOffsets", "mean of integers", "2024.6", None, "rounds means down"),
    ],
)
def test_other_values_are_remarks(type: str, name: str, release: str, constants: int | None, says: str) -> None:
    _, _, found = _written(type, name, release, constants)
    assert not found.findings
    assert any(says in remark.message for remark in found.remarks if remark.code == "IR907")


@pytest.mark.parametrize(
    ("type", "name", "release", "constants", "says"),
    [
        ("ConvolutionBackpropData", "valid cut before the second tap", "2021.4", 1, "larger than its output"),
        ("ShapeOf", "scalar", "2021.4", None, "outputs without elements"),
        ("ShapeOf", "scalar", "2022.3", None, "outputs without elements"),
        ("PriorBox", "no sizes", "2021.4", None, "tensors without elements"),
        ("ScatterElementsUpdate", "u8 wraps", "2023.3", 1, "of u8 with a reduction"),
        ("Col2Im", "plain", "2024.6", None, "runs Col2Im only if its inputs 1, 2 are constants"),
        ("SliceScatter", "one axis", "2024.6", None, "runs SliceScatter only if"),
        ("Convert", "f8e4m3 to f32", "2024.6", None, "inputs of f8e4m3"),
    ],
)
def test_what_a_release_refuses(type: str, name: str, release: str, constants: int | None, says: str) -> None:
    _, _, found = _written(type, name, release, constants)
    assert any(says in finding.message for finding in found.findings if finding.code == "IR906")


@pytest.mark.parametrize(
    ("type", "name", "release", "constants"),
    [
        ("ShapeOf", "i32, in bf16", "2021.4", None),
        ("ShapeOf", "empty", "2021.4", None),
        ("OneHot", "last axis, in bf16", "2021.4", 1),
        ("Select", "same shapes, in bf16", "2021.4", 1),
        ("Convert", "boolean to u1", "2021.4", None),
        ("Convert", "f32 to u4", "2024.6", None),
        ("ConvertLike", "f32 to bf16", "2021.4", None),
        ("MVN", "scalar", "2022.3", 1),
        ("Unsqueeze", "bf16 scalar", "2022.3", 1),
        ("PriorBox", "no sizes", "2022.3", None),
    ],
)
def test_what_a_release_runs_is_not_refused(type: str, name: str, release: str, constants: int | None) -> None:
    _, _, found = _written(type, name, release, constants)
    assert not found.findings


def test_the_older_normalisation_of_a_scalar_is_refused() -> None:
    """Version 6 is run."""
    builder = Builder("m")
    builder.result(builder.emit("MVN", builder.parameter("f32", [], "x"), version=2, eps=1e-5))
    (finding,) = downgrade(builder.model(), "2023.3").findings
    assert "MVN before version 6 of a scalar" in finding.message


@pytest.mark.parametrize(("release", "count"), [("2022.3", 0), ("2023.3", 1)])
def test_lengths_that_follow_from_sizes_are_constants_in_2022(release: str, count: int) -> None:
    """Its shape inference does not compute a Mod, and the plugin fails for what is left dynamic (roformer)."""
    builder = Builder("m")
    x = builder.parameter("f32", [2, 7], "x")
    size = builder.emit("Gather", builder.emit("ShapeOf", x, version=3), [1], 0, version=8)
    rest = builder.emit("Mod", size, [3], version=1)
    lengths = builder.emit("Concat", builder.emit("Subtract", size, rest, version=1), rest, version=1, axis=0)
    for part in builder.emit("VariadicSplit", x, 1, lengths, version=1):
        builder.result(part)
    written = downgrade(builder.model(), release).require().model
    assert len([node for node in written.nodes if node.type == "Mod"]) == count


def test_new_axes_of_computed_bounds_stay_at_their_positions() -> None:
    """A new axis between a removed and a whole one, beside an ellipsis: computed by NumPy."""
    builder = Builder("m")
    x, begin = builder.parameter("f32", [4, 5, 6], "x"), builder.parameter("i64", [4], "begin")
    masks = {"begin_mask": [0, 0, 0, 0], "end_mask": [0, 0, 0, 1]}
    masks |= {"new_axis_mask": [0, 1, 0, 0], "shrink_axis_mask": [1, 0, 0, 0], "ellipsis_mask": [0, 0, 1, 0]}
    builder.result(builder.emit("StridedSlice", x, begin, [2, 0, 0, 6], [1, 1, 1, 2], version=1, **masks))
    found = downgrade(builder.model(), "2023.3").require().model
    data = np.arange(120, dtype=np.float32).reshape(4, 5, 6)
    (given,) = _results(found, [data, np.array([1, 0, 0, 3])])
    np.testing.assert_array_equal(given, data[1, None, ..., 3::2])


def _product(element: str, groups: tuple[int, int]) -> tuple[Model, np.ndarray]:
    """A product with weights [groups, rows] of one column, as NNCF writes them, and the weights."""
    builder, count, rows = Builder("m"), *groups
    values = np.linspace(-1, 1, count * rows).reshape(1, count, rows) if element == "nf4" else np.arange(count * rows)
    stored = packed(round_to(element_named(element), np.reshape(values % 16, (1, count, rows))), element_named(element))
    scales = np.arange(1, count + 1, dtype=np.float16).reshape(1, count, 1)
    weights = builder.emit("Convert", builder.raw_constant(stored), version=1, destination_type="f16")
    weights = builder.emit("Subtract", weights, np.full_like(scales, 2), version=1)
    weights = builder.emit("Multiply", weights, scales, version=1)
    flat = builder.emit("Reshape", weights, [1, count * rows], version=1, special_zero=False)
    flat = builder.emit("Convert", flat, version=1, destination_type="f32")
    x = builder.parameter("f32", [count * rows, count * rows], "x")
    builder.result(builder.emit("MatMul", x, flat, version=1, transpose_b=True))
    expected = (constant_value(stored).astype(np.float32) - 2) * scales.astype(np.float32)
    return builder.model(), expected.reshape(-1, 1)


@pytest.mark.parametrize(
    ("groups", "written"), [((3, 8), "f32"), ((2, 12), "f32"), ((4, 12), "f32"), ((2, 8), "u4"), ((3, 16), "u4")]
)
def test_groups_of_weights_that_are_not_blocks_are_unpacked(groups: tuple[int, int], written: str) -> None:
    """OpenVINO 2023.2 to 2024.6 multiply by scales of other groups, or end the process."""
    model, weights = _product("u4", groups)
    found = downgrade(model, "2023.3").require().model
    held = [node.constant.element.name for node in found.nodes if node.constant is not None]
    assert written in held and (written == "u4") == (len(held) > 1)
    np.testing.assert_allclose(_results(found, [np.eye(len(weights), dtype=np.float32)])[0], weights, 1e-6)


@pytest.mark.parametrize(("release", "element"), [("2022.3", "f16"), ("2023.3", "nf4")])
def test_a_constant_of_a_newer_type_is_written_as_it_is_converted(release: str, element: str) -> None:
    model, weights = _product("nf4", (2, 16))
    found = downgrade(model, release).require().model
    assert element in {node.constant.element.name for node in found.nodes if node.constant is not None}
    np.testing.assert_allclose(_results(found, [np.eye(len(weights), dtype=np.float32)])[0], weights, 1e-3, 1e-3)


@pytest.mark.parametrize(
    ("release", "first", "says"),
    [
        ("2022.3", "?", "does not run variables whose shape is not known"),
        ("2023.3", "?", None),
        ("2023.3", "0", "only if the shape of their first value is not known either"),
        ("2024.6", "0", None),
    ],
)
def test_variables_of_open_shape(release: str, first: str, says: str | None) -> None:
    """The keys of a decoder, to which each run adds; the shape of their first value is open with the batch, or known."""
    x = opset.parameter([first.replace("0", "1"), 1, 4], "f32", "x")
    start = opset.parameter([first.replace("0", "1"), first, 4], "f32", "start")
    state = opset.read_value(start, variable_id="keys", variable_shape=["?", "?", 4], variable_type="f32")
    keys = opset.concat(state, x, axis=1)
    model = Model([keys], [x, start], sinks=[opset.assign(keys, variable_id="keys")])
    findings = downgrade(model, release).findings
    assert [finding.message for finding in findings if says is None or says not in finding.message] == []
    assert bool(findings) == (says is not None)


@pytest.mark.parametrize(
    ("type", "name", "axis", "releases", "says"),
    [
        ("DFT", "two axes", 0, "2022.3,2023.3", "the sizes of its data are known"),
        ("RDFT", "two axes", 0, "2022.3", "the sizes of its data are known"),
        ("PSROIPooling", "average", 2, "2022.3,2023.3", "the sizes of its data are known"),
        ("NonMaxSuppression", "f16", 2, "2022.3,2023.3", "axis 2 of its data is known"),
        ("NonMaxSuppression", "f16", 1, "", ""),
        ("AvgPool", "plain, exclude-pad true", 1, "2022.3", "axis 1 of its data is known"),
        ("AvgPool", "plain, exclude-pad true", 2, "", ""),
        ("LSTMSequence", "forward", 2, "2022.3,2023.3", "axis 2 of its data is known"),
        ("LSTMSequence", "forward", 0, "2022.3,2023.3", "both known or both open"),
        ("LSTMSequence", "forward", 1, "", ""),
        ("RNNCell", "no B", 0, "2022.3", "both known or both open"),
        ("BatchToSpace", "two axes", 1, "2022.3", "of fewer than 4 axes"),
        ("BatchNormInference", "2-D", 0, "2022.3,2023.3", "the number of channels is known"),
    ],
)
def test_sizes_that_a_plugin_must_know(type: str, name: str, axis: int, releases: str, says: str) -> None:
    """Which release runs the layer with an open size of its first input was asked of the release itself."""
    for release in ("2022.3", "2023.3"):
        model, inputs = model_of(_ROWS[type, name], 1)
        model.reshape({0: [*inputs[0].shape[:axis], Dim(), *inputs[0].shape[axis + 1 :]]})
        findings = downgrade(model, release).findings
        assert [says in finding.message for finding in findings] == [True] * (release in releases)


def test_lengths_that_shapes_decide_are_constants_in_bodies_too(tmp_path: Path) -> None:
    """The plugin of 2022.3 infers other lengths of the parts, by way of Mod, from a size that is known."""
    model = read_model(unpacked("scripted_loop", tmp_path))
    types = [{node.type for node in downgrade(model, release).model.walk()} for release in ("2022.3", "2023.3")]
    assert ["Mod" in found for found in types] == [False, True]
    assert all("VariadicSplit" in found for found in types)


def test_unwritten_boxes_are_a_remark_until_they_are_cut_off() -> None:
    """Validation asks about the model as it is, which a downgrade writes otherwise."""
    boxes, scores = opset.parameter([1, 4, 4], "f32", "boxes"), opset.parameter([1, 1, 4], "f32", "scores")
    selected = opset.non_max_suppression(boxes, scores, 3, 0.5, output_type="i64")[0]
    model = Model([opset.gather(selected, [0, 2], 1)], [boxes, scores])
    said = "the last ones unwritten"
    assert any(said in finding.message for finding in validate(model, release="2022.3"))
    assert not any(said in remark.message for remark in downgrade(model, "2022.3").require().remarks)
