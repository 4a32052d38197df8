"""More models of the corpus: operations of every opset, and the odd corners of the format."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import openvino as ov
from openvino import (
    opset1,
    opset2,
    opset3,
    opset4,
    opset5,
    opset6,
    opset7,
    opset8,
    opset9,
    opset10,
    opset11,
    opset12,
    opset13,
    opset14,
    opset15,
    opset16,
)

RNG = np.random.default_rng(1)


def floats(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def parameter(*shape: int, kind: type = np.float32, name: str = "x") -> ov.Node:
    return opset1.parameter(list(shape), kind, name=name)


def model(name: str, inputs: list[ov.Node], *nodes: ov.Node) -> ov.Model:
    """A model with a Result for every output of the nodes."""
    return ov.Model([opset1.result(output) for node in nodes for output in node.outputs()], inputs, name)


def opset_1() -> ov.Model:
    x = parameter(1, 4, 6, 6)
    y = opset1.convolution(x, floats(4, 4, 3, 3), [1, 1], [0, 0], [0, 0], [1, 1], "same_upper")
    y = opset1.batch_norm_inference(y, floats(4), floats(4), floats(4), np.abs(floats(4)), 1e-5)
    y = opset1.prelu(opset1.elu(y, 0.5), floats(4))
    y = opset1.avg_pool(y, [2, 2], [1, 1], [1, 1], [3, 3], True, "floor", "explicit")
    y = opset1.lrn(opset1.clamp(y, -float("inf"), 6.0), np.array([1]), 1e-4, 0.75, 1.0, 5)
    y = opset1.normalize_l2(y, np.array([1, 2]), 1e-6, "max")
    y = opset1.fake_quantize(y, *(np.float32(v) for v in (-1, 1, -1, 1)), 256)
    return model(
        "opset_1",
        [x],
        opset1.depth_to_space(y, "blocks_first", 2),
        opset3.shuffle_channels(y, 1, 2),
        opset1.softmax(y, 1),
    )


def opset_2() -> ov.Model:
    x = parameter(4, 2, 3, 4)
    block, begin, end = np.array([1, 2, 1, 1]), np.array([0, 0, 0, 0]), np.array([0, 1, 0, 0])
    y = opset2.batch_to_space(x, block, begin, end)
    return model(
        "opset_2",
        [x],
        opset2.space_to_batch(y, np.array([1, 1, 3, 1]), begin, begin),
        opset2.mvn(x, True, False, 1e-9),
        opset2.gelu(x),
    )


def opset_3() -> ov.Model:
    x, i = parameter(3, 4), parameter(2, kind=np.int32, name="i")
    y = opset3.scatter_update(x, i, floats(2, 4), np.array(0))
    return model(
        "opset_3", [x, i],
        opset3.broadcast(y, np.array([2, 3, 4]), broadcast_spec="bidirectional"),
        opset3.bucketize(y, np.array([0.0, 1.0], np.float32), "i32", False),
        opset3.cum_sum(y, np.array(-1), True, True),
        opset3.topk(y, np.array(2), 1, "min", "value", "i32"),
        opset3.non_zero(y, "i32"),
        opset3.shape_of(y, "i32"),
        opset3.embedding_bag_offsets_sum(x, np.array([0, 2, 1], np.int32), np.array([0, 2], np.int32)),
    )  # fmt: skip


def opset_4() -> ov.Model:
    x = parameter(1, 2, 4, 4)
    y = opset4.interpolate(x, np.array([8, 6]), {"axes": [2, 3], "mode": "nearest", "align_corners": False})
    scales, axes = np.array([2.0, 1.5], np.float32), np.array([2, 3])
    y = opset10.interpolate(
        y, np.array([16, 9]), scales, "linear_onnx", "sizes", [0, 0], [0, 0], "asymmetric", axes=axes
    )
    flat = opset4.reduce_l2(opset4.hswish(opset4.mish(opset4.softplus(y))), np.array([2, 3]), False)
    boxes, scores = parameter(1, 5, 4, name="boxes"), parameter(1, 2, 5, name="scores")
    nms = opset4.non_max_suppression(
        boxes, scores, np.array(2), np.float32(0.5), np.float32(0.1), "center", True, "i32"
    )
    return model(
        "opset_4",
        [x, boxes, scores],
        flat,
        opset4.acosh(y),
        opset4.range(np.array(0), np.array(6), np.array(2), "i64"),
        nms,
    )


def opset_5() -> ov.Model:
    x, length = parameter(2, 5, 3), parameter(2, kind=np.int32, name="length")
    y = opset5.lstm_sequence(
        x,
        floats(2, 1, 4),
        floats(2, 1, 4),
        length,
        floats(1, 16, 3),
        floats(1, 16, 4),
        floats(1, 16),
        4,
        "reverse",
        activations=["sigmoid", "tanh", "tanh"],
    )
    z = opset5.gru_sequence(
        x,
        floats(2, 1, 4),
        length,
        floats(1, 12, 3),
        floats(1, 12, 4),
        floats(1, 16),
        4,
        "forward",
        linear_before_reset=True,
        clip=2.5,
    )
    return model(
        "opset_5",
        [x, length],
        y,
        z,
        opset5.log_softmax(x, -1),
        opset5.round(x, "half_away_from_zero"),
        opset5.hsigmoid(x),
    )


def opset_6() -> ov.Model:
    x = parameter(2, 3, 4)
    return model(
        "opset_6", [x],
        opset6.mvn(x, np.array([1, 2]), True, 1e-5, "inside_sqrt"),
        opset6.gather_elements(x, np.zeros((2, 1, 4), np.int64), 1),
    )  # fmt: skip


def opset_7() -> ov.Model:
    x, y = parameter(2, 3, 4), parameter(2, 4, 5, name="y")
    return model(
        "opset_7", [x, y],
        opset7.einsum([x, y], "bij,bjk->bik"),
        opset7.gelu(x, "tanh"),
        opset7.roll(x, np.array([1, -1]), np.array([0, 2])),
        opset7.dft(opset7.reshape(x, np.array([2, 6, 2]), False), np.array([1])),
        opset7.gather(x, np.array([[0, 1]]), np.array(1), 0),
    )  # fmt: skip


def opset_8() -> ov.Model:
    x = parameter(1, 4, 8, 8)
    offsets, mask = floats(1, 18, 6, 6), np.abs(floats(1, 9, 6, 6))
    y = opset8.deformable_convolution(
        x, offsets, floats(4, 4, 3, 3), [1, 1], [0, 0], [0, 0], [1, 1], mask, bilinear_interpolation_pad=True
    )
    z = opset8.slice(y, np.array([0, 5]), np.array([4, -(2**63)]), np.array([2, -1]), np.array([1, 3]))
    picture = opset8.parameter([1, 6, 4, 1], np.uint8, name="picture")
    return model(
        "opset_8", [x, picture],
        z,
        opset8.max_pool(y, [2, 2], [1, 1], [0, 0], [0, 0], [2, 2], "ceil", "explicit", "i32", 1),
        opset8.adaptive_avg_pool(y, np.array([2, 3])),
        opset8.random_uniform(np.array([2, 2]), np.float32(0), np.float32(1), "f32", 3, 7),
        opset8.nv12_to_rgb(picture),
        opset8.gather_nd(y, np.array([[0, 1]]), 0),
    )  # fmt: skip


def opset_9() -> ov.Model:
    x = parameter(1, 2, 6, 6)
    grid, boxes = floats(1, 3, 3, 2), parameter(3, 4, name="boxes")
    return model(
        "opset_9", [x, boxes],
        opset9.grid_sample(x, grid, {"mode": "bicubic", "padding_mode": "reflection", "align_corners": True}),
        opset9.roi_align(x, boxes, np.array([0, 0, 0]), 2, 2, 2, 0.5, "max", "half_pixel_for_nn"),
        opset9.rdft(x, np.array([2, 3])),
        opset9.eye(np.array(3), np.array(4), np.array(1), "f16"),
        opset9.softsign(x),
    )  # fmt: skip


def opset_10() -> ov.Model:
    x = parameter(2, 3)
    return model(
        "opset_10", [x],
        opset10.is_finite(x),
        opset10.is_inf(x, {"detect_negative": False}),
        opset10.is_nan(x),
        opset10.unique(x, np.array(1), False, "i32", "i64"),
    )  # fmt: skip


def opset_11() -> ov.Model:
    x = parameter(1, 2, 4, 4)
    y = opset11.interpolate(
        x, np.array([2.0, 2.0], np.float32), "bicubic_pillow", "scales", cube_coeff=-0.5, axes=np.array([2, 3])
    )
    return model("opset_11", [x], y, opset11.topk(x, np.array(2), -1, "max", "value", "i64", stable=True))


def opset_12() -> ov.Model:
    x = parameter(2, 4, 3)
    return model(
        "opset_12", [x],
        opset12.group_normalization(x, floats(4), floats(4), 2, 1e-3),
        opset12.pad(x, np.array([0, -1, 1]), np.array([1, 0, 0]), "constant", np.float32(2.5)),
        opset12.scatter_elements_update(x, np.zeros((1, 1, 3), np.int64), floats(1, 1, 3), np.array(1), "mean", False),
    )  # fmt: skip


def opset_13() -> ov.Model:
    q, k, v = (parameter(1, 2, 3, 4, name=name) for name in "qkv")
    bits = parameter(4, kind=np.int32, name="bits")
    return model(
        "opset_13", [q, k, v, bits],
        opset13.scaled_dot_product_attention(q, k, v, causal=True),
        opset13.bitwise_xor(bits, np.array([1], np.int32)),
        opset13.fake_convert(q, np.float32(1), destination_type="f8e5m2"),
        opset13.multinomial(opset13.constant(np.abs(floats(2, 3))), np.array([4]), "i32", True, True, 1, 2),
    )  # fmt: skip


def opset_14() -> ov.Model:
    x, i = parameter(1, 2, 5, 5), parameter(1, kind=np.int8, name="i")
    return model(
        "opset_14", [x, i],
        opset14.max_pool(x, [2, 2], [1, 1], [0, 0], [0, 0], [2, 2], "ceil_torch"),
        opset14.convert_promote_types(x, i, True, False, "f64"),
        opset14.inverse(opset14.constant(np.eye(2, dtype=np.float32)), True),
    )  # fmt: skip


def opset_15() -> ov.Model:
    x = parameter(1, 12, 9)
    return model(
        "opset_15", [x],
        opset15.col2im(x, np.array([4, 4]), np.array([2, 2])),
        opset15.slice_scatter(x, floats(1, 12, 3), np.array([0]), np.array([3]), np.array([1]), np.array([2])),
        opset15.search_sorted(opset15.constant(np.array([1.0, 2.0], np.float32)), np.array([1.5], np.float32), True),
        opset15.stft(parameter_value(64), floats(16), np.array(16), np.array(8), False),
    )  # fmt: skip


def parameter_value(count: int) -> ov.Node:
    return opset15.constant(np.linspace(0, 1, count, dtype=np.float32))


def opset_16() -> ov.Model:
    x = parameter(4, 3)
    return model(
        "opset_16", [x],
        opset16.identity(x),
        opset16.segment_max(x, np.array([0, 0, 2, 2]), fill_mode="LOWEST"),
        opset16.avg_pool(opset16.unsqueeze(x, np.array([0])), [2], [0], [0], [2], False, "ceil_torch", dilations=[1]),
    )  # fmt: skip


def state_3() -> ov.Model:
    x = parameter(1, 3)
    read = opset3.read_value(opset3.constant(np.zeros((1, 3), np.float32)), "old")
    total = opset3.add(read, x)
    return ov.Model([opset3.result(total)], [opset3.assign(total, "old")], [x], "state_3")


def loop_of_branches() -> ov.Model:
    """An If inside a Loop inside an If."""
    x, condition = parameter(2), parameter(kind=bool, name="condition")
    then_x, else_x = parameter(2, name="then_x"), parameter(2, name="else_x")
    state, count = parameter(2, name="state"), parameter(kind=np.int64, name="count")
    yes, no = parameter(2, name="yes"), parameter(2, name="no")
    inner = opset8.if_op(opset8.less(count, opset8.constant(2, dtype=np.int64)).output(0))
    doubled, halved = opset8.result(opset8.add(yes, yes)), opset8.result(opset8.multiply(no, np.float32(0.5)))
    inner.set_then_body(ov.Model([doubled], [yes], "inner then"))
    inner.set_else_body(ov.Model([halved], [no], "inner else"))
    inner.set_input(state.output(0), yes, no)
    last = opset8.result(inner.set_output(doubled, halved))
    on = opset8.result(opset8.constant(True))
    loop = opset8.loop(opset8.constant(4), opset8.constant(True))
    loop.set_function(ov.Model([on, last], [count, state], "loop body"))
    loop.set_special_body_ports([0, 0])
    loop.set_merged_input(state, then_x.output(0), last.output(0))
    then_result, else_result = (
        opset8.result(loop.get_iter_value(last.output(0), -1)),
        opset8.result(opset8.negative(else_x)),
    )
    outer = opset8.if_op(condition)
    outer.set_then_body(ov.Model([then_result], [then_x], "then"))
    outer.set_else_body(ov.Model([else_result], [else_x], "else"))
    outer.set_input(x.output(0), then_x, else_x)
    return ov.Model([opset8.result(outer.set_output(then_result, else_result))], [x, condition], "loop_of_branches")


def fan() -> ov.Model:
    """More than 16 edges: from there on their order follows from nothing."""
    x = parameter(2)
    y = x
    for _ in range(20):
        y = opset1.add(y, x)
    return model("fan", [x], y)


def empty() -> ov.Model:
    x = parameter(2, 0)
    arrays = [
        np.zeros((0, 3), np.float32), floats(3), np.zeros(0, np.int64), np.ones(5, np.int8),
        np.zeros((2, 0), np.float32),
    ]  # fmt: skip
    # Made of values, an empty constant has one byte; made of a tensor, it has none.
    tensors = [
        ov.Tensor(ov.Type.f32, ov.Shape([0, 3])),
        ov.Tensor(np.array([], "U1")),
        ov.Tensor(ov.Type.f16, ov.Shape([0])),
    ]
    constants = [opset13.constant(array) for array in arrays] + [ov.op.Constant(tensor) for tensor in tensors]
    return model("empty", [x], x, *constants)


def unaligned() -> ov.Model:
    x = parameter(3, kind=np.int64)
    return model("unaligned", [x], opset1.constant(np.array([1, 2, 3], np.int8)), opset1.add(x, np.array([7, 8, 9])))


def any_type() -> ov.Model:
    x = opset1.parameter(ov.PartialShape.dynamic(), ov.Type.dynamic, name="x")
    return model("any_type", [x], opset1.relu(x))


def bounds() -> ov.Model:
    x = opset1.parameter(ov.PartialShape("2..,..5,?,3..4,7"), np.float32, name="x")
    return model("bounds", [x], opset1.transpose(x, np.array([4, 3, 2, 1, 0])), opset1.shape_of(x))


def information() -> ov.Model:
    x = parameter(2, 2)
    x.set_layout(ov.Layout("[N,C]"))
    y = opset1.relu(x)
    # Of what a layer or port is given, OpenVINO saves only what it knows itself; of a model, everything.
    y.get_rt_info()["of the layer"] = "lost"
    made = model("information", [x], y)
    made.set_rt_info("1", ["a", "b", "c"])
    made.set_rt_info([0.5, 1.5], ["a", "list"])
    made.set_rt_info(True, "flag")
    return made


def strange_names() -> ov.Model:
    x = parameter(1, name="x <&> \"quoted\" 'twice'")
    x.output(0).set_names({"comma,", ",", "back\\slash", "größe", "日本", "tab\there", "a\\,b"})
    y = opset1.relu(x)
    y.set_friendly_name("line\nbreak")
    return model("größe <&>", [x], y)


def half() -> ov.Model:
    """Saved with its weights compressed to f16; a constant that would overflow stays f32."""
    x = parameter(1, 8)
    y = opset1.matmul(x, floats(8, 16), False, False)
    return model("half", [x], opset1.add(y, np.full((1, 16), 1e6, np.float32)))


def compressed() -> ov.Model:
    """Weights in 4 and 8 bits with scale and zero point."""
    x = parameter(1, 8)
    nibbles = ov.op.Constant(ov.Type.u4, ov.Shape([8, 4]), list(np.arange(32) % 16))
    y = opset1.multiply(opset1.subtract(opset1.convert(nibbles, "f32"), np.float32(8)), floats(1, 4))
    signed = ov.op.Constant(ov.Type.i8, ov.Shape([4, 4]), list(range(-8, 8)))
    return model(
        "compressed", [x], opset1.matmul(opset1.matmul(x, y, False, False), opset1.convert(signed, "f32"), False, True)
    )


def text() -> ov.Model:
    words = opset15.parameter([2], ov.Type.string, name="words")
    packed = opset15.string_tensor_unpack(words)
    constant = ov.op.Constant(ov.Tensor(np.array([["ein", "zwei"], ["", "größe"]])))
    return model("text", [words], packed, constant)


def scalars() -> ov.Model:
    x = parameter()
    return model(
        "scalars", [x], opset1.add(x, np.float32(1)), opset1.power(x, np.float32(np.nan)), opset1.clamp(x, -1e-30, 3e38)
    )


def transposed() -> ov.Model:
    x = parameter(1, 4, 5, 5)
    y = opset1.convolution_backprop_data(x, floats(4, 2, 3, 3), [2, 2], np.array([10, 10]), auto_pad="same_lower")
    return model(
        "transposed", [x], y, opset1.group_convolution(x, floats(2, 1, 2, 3, 3), [1, 1], [0, 1], [2, 3], [1, 1])
    )


def detection() -> ov.Model:
    boxes, scores, priors = (
        parameter(1, 20, name="boxes"),
        parameter(1, 10, name="scores"),
        parameter(1, 2, 20, name="priors"),
    )
    attributes = {
        "background_label_id": 0, "top_k": 3, "variance_encoded_in_target": False, "keep_top_k": np.array([3]), "code_type": "caffe.PriorBoxParameter.CORNER",
        "share_location": True, "nms_threshold": 0.5, "confidence_threshold": 0.01, "clip_after_nms": False, "clip_before_nms": True,
        "decrease_label_id": False, "normalized": True, "input_height": 1, "input_width": 1, "objectness_score": 0.0,
    }  # fmt: skip
    return model("detection", [boxes, scores, priors], opset8.detection_output(boxes, scores, priors, attributes))


def cells() -> ov.Model:
    x, h, c = parameter(2, 3), parameter(2, 4, name="h"), parameter(2, 4, name="c")
    return model(
        "cells", [x, h, c],
        opset4.lstm_cell(x, h, c, floats(16, 3), floats(16, 4), floats(16), 4),
        opset3.gru_cell(x, h, floats(12, 3), floats(12, 4), floats(12), 4),
        opset3.rnn_cell(x, h, floats(4, 3), floats(4, 4), floats(4), 4, ["relu"], [], []),
    )  # fmt: skip


def strides() -> ov.Model:
    x = parameter(3, 4, 5)
    y = opset1.strided_slice(
        x,
        np.array([0, 1, 0]),
        np.array([0, 3, 5]),
        np.array([1, 1, 2]),
        [1, 0, 0],
        [1, 0, 0],
        [0, 0, 0],
        [0, 0, 0],
        [0, 0, 0],
    )
    pieces = opset1.variadic_split(x, np.array(2), np.array([1, -1, 2]))
    return model(
        "strides",
        [x],
        y,
        pieces,
        opset1.tile(x, np.array([1, 2, 1])),
        opset1.one_hot(np.array([0, 2]), np.array(3), np.float32(1), np.float32(0), -1),
    )


MODELS: dict[str, Callable[[], ov.Model]] = {
    made.__name__: made
    for made in (
        opset_1, opset_2, opset_3, opset_4, opset_5, opset_6, opset_7, opset_8, opset_9, opset_10, opset_11, opset_12, opset_13, opset_14,
        opset_15, opset_16, state_3, loop_of_branches, fan, empty, unaligned, any_type, bounds, information, strange_names, half, compressed,
        text, scalars, transposed, detection, cells, strides,
    )
}  # fmt: skip
