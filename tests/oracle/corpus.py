"""Small IRs that OpenVINO itself wrote, for the tests of reading, validating and writing.

    python -m tests.oracle.corpus

writes tests/data/openvino/**/*.xml and .bin; the tests themselves need no OpenVINO.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import openvino as ov
from openvino import opset13 as ops

from tests.oracle import corpus_operations
from tests.support.paths import IRS

RNG = np.random.default_rng(0)


def floats(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def convolutions() -> ov.Model:
    x = ops.parameter([1, 3, 16, 16], np.float32, name="x")
    y = ops.convolution(x, floats(8, 3, 3, 3), [1, 1], [1, 1], [1, 1], [1, 1])
    y = ops.relu(ops.add(y, floats(1, 8, 1, 1)))
    y = ops.max_pool(y, [2, 2], [1, 1], [0, 0], [0, 0], [2, 2]).output(0)
    y = ops.group_convolution_backprop_data(
        y, floats(2, 4, 3, 4, 4), [2, 2], pads_begin=[1, 1], pads_end=[1, 1], dilations=[1, 1]
    )
    y = ops.reduce_mean(y, np.array([2, 3]), True)
    y = ops.reshape(y, np.array([0, -1]), True)
    return ov.Model([ops.result(ops.softmax(ops.matmul(y, floats(6, 4), False, False), 1))], [x], "convolutions")


def names() -> ov.Model:
    x = ops.parameter([2, 3], np.float32, name="x")
    x.output(0).set_names({"a,b", "c\\d", "out:0"})
    y = ops.matmul(x, floats(3, 600), False, False)
    y.set_friendly_name("a layer, with a comma")
    y.get_rt_info()["note"] = "kept"
    model = ov.Model([ops.result(y, name="the result")], [x], "names")
    model.set_rt_info("value", "key")
    model.set_rt_info("deep", ["outer", "inner"])
    return model


def dynamic() -> ov.Model:
    x = ops.parameter(ov.PartialShape([-1, ov.Dimension(2, 5), 3]), np.float32, name="x")
    k = ops.parameter(ov.PartialShape.dynamic(), np.float32, name="any rank")
    shape = ops.shape_of(x)
    size = ops.gather(shape, np.array([0]), np.array(0))
    target = ops.concat([size, ops.constant(np.array([-1]))], 0)
    flat = ops.reshape(x, target, False)
    return ov.Model([ops.result(flat), ops.result(ops.relu(k))], [x, k], "dynamic")


def types() -> ov.Model:
    x = ops.parameter([1], np.float32, name="x")
    values = {
        "boolean": [1, 0, 1], "u1": [1, 0, 1, 1, 0, 0, 1, 0, 1], "u2": [0, 1, 2, 3, 1], "u3": [0, 1, 2, 3, 4, 5, 6, 7, 5], "u4": [1, 2, 15],
        "u6": [0, 1, 33, 63, 17], "u8": [1, 255], "u16": [1, 65535], "u32": [1, 70000], "u64": [1, 7], "i4": [-8, 7, -1], "i8": [-1, 3],
        "i16": [-300, 2], "i32": [-70000], "i64": [-1, 2], "bf16": [1.5, -2], "f16": [0.5], "f32": [0.1], "f64": [0.1], "nf4": [0.0, 1.0, -1.0],
        "f8e4m3": [1.5, 448], "f8e5m2": [1.5, -2], "f8e8m0": [1, 2, 4], "f4e2m1": [1, 6, -0.5],
    }  # fmt: skip
    results, kept = [ops.result(x)], []
    for name, numbers in values.items():
        constant = ov.op.Constant(getattr(ov.Type, name), ov.Shape([len(numbers)]), numbers)
        kept.append(constant)
        results.append(ops.result(constant))
    kept.append(ov.op.Constant(ov.Tensor(np.array(["one", "", "drei"]))))
    return ov.Model([*results, ops.result(kept[-1])], [x], "types")


def loop() -> ov.Model:
    x, start = ops.parameter([3, 1, 2], np.float32, name="x"), ops.parameter([1, 2], np.float32, name="start")
    count, part, state = (
        ops.parameter([], np.int64),
        ops.parameter([1, 1, 2], np.float32),
        ops.parameter([1, 2], np.float32),
    )
    total = ops.add(ops.squeeze(part, ops.constant([0])), state)
    continues = ops.less(count, ops.constant(2, dtype=np.int64))
    last, on, each = ops.result(total), ops.result(continues), ops.result(ops.unsqueeze(total, ops.constant([0])))
    body = ov.Model([on, last, each], [count, part, state], "body")
    node = ops.loop(ops.constant(10), ops.constant(True))
    node.set_function(body)
    node.set_special_body_ports([0, 0])
    node.set_sliced_input(part, x.output(0), -1, -1, 1, 0, 0)
    node.set_merged_input(state, start.output(0), last.output(0))
    outputs = [node.get_iter_value(last.output(0), -1), node.get_concatenated_slices(each.output(0), 0, 1, 1, -1, 0)]
    return ov.Model([ops.result(output) for output in outputs], [x, start], "loop")


def tensor_iterator() -> ov.Model:
    x, start = ops.parameter([2, 4, 3], np.float32, name="x"), ops.parameter([2, 3], np.float32, name="start")
    part, state = ops.parameter([2, 1, 3], np.float32), ops.parameter([2, 3], np.float32)
    total = ops.tanh(ops.add(ops.squeeze(part, ops.constant([1])), state))
    last, each = ops.result(total), ops.result(ops.unsqueeze(total, ops.constant([1])))
    node = ops.tensor_iterator()
    node.set_body(ov.Model([last, each], [part, state], "body"))
    node.set_sliced_input(part, x.output(0), 0, 1, 1, -1, 1)
    node.set_merged_input(state, start.output(0), last.output(0))
    outputs = [node.get_iter_value(last.output(0), -1), node.get_concatenated_slices(each.output(0), 0, 1, 1, -1, 1)]
    return ov.Model([ops.result(output) for output in outputs], [x, start], "tensor_iterator")


def branch() -> ov.Model:
    x, y, condition = (
        ops.parameter([2, 3], np.float32, name="x"),
        ops.parameter([2, 3], np.float32, name="y"),
        ops.parameter([], bool, name="c"),
    )
    a, b, c = (ops.parameter([2, 3], np.float32) for _ in range(3))
    then_body = ov.Model([ops.result(ops.add(a, b)), ops.result(ops.relu(a))], [a, b], "then")
    else_body = ov.Model([ops.result(ops.relu(c)), ops.result(ops.negative(c))], [c], "else")
    node = ops.if_op(condition)
    node.set_then_body(then_body)
    node.set_else_body(else_body)
    node.set_input(x.output(0), a, None)
    node.set_input(y.output(0), b, c)
    outputs = [node.set_output(then_body.results[i], else_body.results[i]) for i in range(2)]
    return ov.Model([ops.result(outputs[1]), ops.result(outputs[0])], [x, y, condition], "branch")


def state() -> ov.Model:
    x = ops.parameter([1, 3], np.float32, name="x")
    read = ops.read_value(ops.constant(np.zeros((1, 3), np.float32)), "counter", np.float32, [1, 3])
    total = ops.add(read, x)
    return ov.Model([ops.result(total)], [ops.assign(total, "counter")], [x], "state")


def shared() -> ov.Model:
    x = ops.parameter([2, 4], np.float32, name="x")
    weights = floats(4)
    y = ops.multiply(ops.add(x, weights), weights.copy())
    pieces = ops.split(y, ops.constant(1), 2)
    return ov.Model(
        [ops.result(pieces.output(0)), ops.result(pieces.output(1)), ops.result(pieces.output(1))], [x], "shared"
    )


MODELS: dict[str, Callable[[], ov.Model]] = {
    made.__name__: made for made in (convolutions, names, dynamic, types, loop, tensor_iterator, branch, state, shared)
}
COMPRESSED = ("names", "half")


def main() -> None:
    (IRS / "operations").mkdir(parents=True, exist_ok=True)
    # In this order: layers are called by a count that runs through all models.
    for folder, models in ((IRS, MODELS), (IRS / "operations", corpus_operations.MODELS)):
        for name, make in models.items():
            ov.save_model(make(), folder / f"{name}.xml", compress_to_fp16=name in COMPRESSED)
            print(name)


if __name__ == "__main__":
    main()
