"""com.microsoft.nchwc: weights in blocks of channels, which loops over all elements make here from plain ones."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import converters
import irexec
from converters.onnx.examine import examine

NCHWC = "com.microsoft.nchwc"
RNG = np.random.default_rng(0)


def padded(size: int, block: int) -> int:
    return -(-size // block) * block


def in_blocks(weights: np.ndarray, block: int, pairs: bool) -> np.ndarray:
    """Weights (O, I, H, W) as OIHWBiBo, or as OIHWBo without ``pairs``, element by element, padded with zeros."""
    o, i, h, w = weights.shape
    outputs, inputs = padded(o, block), padded(i, block) if pairs else i
    made = np.zeros((outputs, inputs, h, w), np.float32).reshape(-1)
    for position in itertools.product(range(o), range(i), range(h), range(w)):
        po, pi, ph, pw = position
        if pairs:
            index = ((po // block * (inputs // block) + pi // block) * h + ph) * w + pw
            index = (index * block + pi % block) * block + po % block
        else:
            index = (((po // block * inputs + pi) * h + ph) * w + pw) * block + po % block
        made[index] = weights[position]
    return made.reshape(outputs, inputs, h, w)


class Pair:
    """The same graph in ai.onnx and in com.microsoft.nchwc with blocks of one size."""

    def __init__(self, block: int, x: tuple[int, ...]) -> None:
        self.block, self.shape = block, x
        self.plain: list[onnx.NodeProto] = []
        self.blocked: list[onnx.NodeProto] = []
        self.constants: dict[bool, list[onnx.TensorProto]] = {False: [], True: []}
        self.count = 0

    def both(self, operator: str, inputs: list[str], output: str, domain: str = "", **attributes: object) -> str:
        self.plain.append(helper.make_node(operator, inputs, [output], **attributes))
        self.blocked.append(helper.make_node(operator, inputs, [output], domain=domain, **attributes))
        return output

    def reorder(self, operator: str, x: str, output: str, **attributes: object) -> str:
        self.plain.append(helper.make_node("Identity", [x], [output]))
        self.blocked.append(helper.make_node(operator, [x], [output], domain=NCHWC, **attributes))
        return output

    def conv(
        self, x: str, output: str, shape: tuple[int, ...], *, direct: bool = False, group: int = 1, bias: bool = True,
        z: str = "", relu: bool = False, pads: int = 0,
    ) -> str:  # fmt: skip
        """A convolution; ``direct`` reads plain data."""
        self.count += 1
        weights = RNG.standard_normal(shape).astype(np.float32)
        vector = RNG.standard_normal(shape[0]).astype(np.float32)
        depthwise = group > 1 and shape[1] == 1
        wide = np.zeros(padded(shape[0], self.block), np.float32)
        wide[: shape[0]] = vector
        w, b = f"w{self.count}", f"b{self.count}"
        self.constants[False] += [numpy_helper.from_array(weights, w), numpy_helper.from_array(vector, b)]
        self.constants[True] += [
            numpy_helper.from_array(in_blocks(weights, self.block, not direct and not depthwise), w),
            numpy_helper.from_array(wide, b),
        ]
        common = {"kernel_shape": list(shape[2:]), "pads": [pads] * 4}
        inputs = [x, w, b if bias else ""]
        names = [f"{output}_{i}" for i in range(3)]
        self.plain.append(helper.make_node("Conv", inputs, names[:1], group=group, **common))
        self.plain.append(
            helper.make_node("Add", [names[0], z], names[1:2]) if z
            else helper.make_node("Identity", names[:1], names[1:2])
        )  # fmt: skip
        self.plain.append(helper.make_node("Relu" if relu else "Identity", names[1:2], [output]))
        more = {"activation": "Relu"} if relu else {}
        groups = padded(group, self.block) if depthwise else group
        self.blocked.append(
            helper.make_node(
                "Conv", [*inputs, z] if z else inputs, [output], domain=NCHWC, group=groups, **common, **more
            )
        )
        return output

    def model(self, blocked: bool, *outputs: str) -> onnx.ModelProto:
        graph = helper.make_graph(
            self.blocked if blocked else self.plain, "tested",
            [helper.make_tensor_value_info("x", 1, self.shape)],
            [helper.make_tensor_value_info(name, 1, None) for name in outputs], self.constants[blocked],
        )  # fmt: skip
        opsets = [helper.make_opsetid("", 18), helper.make_opsetid(NCHWC, 1), helper.make_opsetid("com.microsoft", 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=8)

    def check(self, *outputs: str) -> irexec.Model:
        """Compare the converted graph with the plain one, run by the reference evaluator of ONNX."""
        x = RNG.standard_normal(self.shape).astype(np.float32)
        expected = ReferenceEvaluator(self.model(False, *outputs)).run(None, {"x": x})
        model = converters.convert(self.model(True, *outputs))
        results = irexec.compile_model(model)([x])
        for name, value in zip(outputs, expected, strict=True):
            np.testing.assert_allclose(results[name], value, rtol=1e-4, atol=1e-3)
        return model


def shapes_of(model: irexec.Model, type: str = "Convolution") -> list[tuple[int, ...]]:
    weights = [node.inputs[1] for node in model.nodes if node.type == type]
    return [value.node.constant.shape for value in weights if value is not None and value.node.constant is not None]


@pytest.mark.parametrize("block", [8, 16])
def test_padded_channels_disappear(block: int) -> None:
    """20 channels are 24 or 32 in blocks; a ReorderOutput says how many there are."""
    pair = Pair(block, (2, 3, 6, 5))
    a = pair.conv("x", "a", (20, 3, 3, 3), direct=True, relu=True, pads=1)
    b = pair.conv(a, "b", (40, 20, 1, 1))
    c = pair.both("Relu", [b], "c")
    model = pair.check(pair.reorder("ReorderOutput", c, "y", channels=40))
    assert shapes_of(model) == [(20, 3, 3, 3), (40, 20, 1, 1)]


@pytest.mark.parametrize("block", [8, 16])
def test_depthwise_and_sums(block: int) -> None:
    pair = Pair(block, (1, 20, 6, 6))
    a = pair.conv(pair.reorder("ReorderInput", "x", "r"), "a", (20, 20, 1, 1))
    b = pair.conv(a, "b", (20, 1, 3, 3), group=20, pads=1, relu=True)
    c = pair.conv(b, "c", (20, 20, 1, 1), z=a, relu=True)
    d = pair.both("Add", [c, b], "d")
    model = pair.check(pair.reorder("ReorderOutput", d, "y", channels=20))
    assert shapes_of(model) == [(20, 20, 1, 1), (20, 20, 1, 1)]
    assert shapes_of(model, "GroupConvolution") == [(20, 1, 1, 3, 3)]


@pytest.mark.parametrize("block", [8, 16])
def test_channels_that_no_operator_declares(block: int) -> None:
    """Between two convolutions channels count up to the last that is computed or read."""
    pair = Pair(block, (1, 4, 4, 4))
    a = pair.conv("x", "a", (20, 4, 1, 1), direct=True)
    b = pair.conv(pair.both("Sigmoid", [a], "s"), "b", (20, 1, 3, 3), group=20, pads=1)
    c = pair.conv(b, "c", (4, 20, 1, 1))
    assert shapes_of(pair.check(pair.reorder("ReorderOutput", c, "y", channels=4)))[1] == (4, 20, 1, 1)


def test_channels_without_weights_are_kept_where_they_are_read() -> None:
    """The last of 20 channels has neither weights nor bias; sigmoid makes 0.5 of it."""
    pair = Pair(8, (1, 4, 4, 4))
    a = pair.conv("x", "a", (20, 4, 1, 1), direct=True)
    for blocked in (False, True):
        for tensor in pair.constants[blocked]:
            array = numpy_helper.to_array(tensor).copy()
            if tensor.name == "w1" and blocked:
                array.reshape(3, 4, 8)[2, :, 3] = 0
            else:
                array[19] = 0
            tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
    b = pair.conv(pair.both("Sigmoid", [a], "s"), "b", (4, 20, 1, 1))
    pair.check(pair.reorder("ReorderOutput", b, "y", channels=4))


@pytest.mark.parametrize("block", [8, 16])
def test_groups_and_concatenation(block: int) -> None:
    """Channels of these are whole blocks."""
    pair = Pair(block, (1, 3, 4, 4))
    a = pair.conv("x", "a", (2 * block, 3, 1, 1), direct=True)
    b = pair.conv(a, "b", (2 * block, block, 3, 3), group=2, pads=1)
    c = pair.conv("x", "c", (block - 4, 3, 1, 1), direct=True)
    d = pair.both("Concat", [a, b], "d", axis=1)
    e = pair.conv(d, "e", (5, 4 * block, 1, 1))
    pair.check(
        pair.reorder("ReorderOutput", e, "y", channels=5), pair.reorder("ReorderOutput", c, "z", channels=block - 4)
    )


@pytest.mark.parametrize("block", [8, 16])
def test_pooling(block: int) -> None:
    pair = Pair(block, (1, 3, 8, 8))
    a = pair.conv("x", "a", (12, 3, 1, 1), direct=True)
    window = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}
    b = pair.both("MaxPool", [a], "b", NCHWC, **window)
    c = pair.both("AveragePool", [a], "c", NCHWC, count_include_pad=1, **window)
    d = pair.both("GlobalAveragePool", [b], "d", NCHWC)
    e = pair.both("GlobalMaxPool", [c], "e", NCHWC)
    f = pair.conv("x", "f", (4, 3, 1, 1), direct=True)
    ends = [pair.reorder("ReorderOutput", name, f"y{name}", channels=12) for name in (b, c, d, e)]
    pair.check(*ends, pair.reorder("ReorderOutput", f, "z", channels=4))


@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_upsample(mode: str) -> None:
    pair = Pair(8, (1, 3, 4, 4))
    a = pair.conv("x", "a", (20, 3, 1, 1), direct=True)
    attributes = {"mode": mode, "coordinate_transformation_mode": "asymmetric"}
    for blocked in (False, True):
        pair.constants[blocked].append(numpy_helper.from_array(np.array([1, 1, 2, 3], np.float32), "scales"))
    pair.plain.append(helper.make_node("Resize", [a, "", "scales"], ["u"], nearest_mode="floor", **attributes))
    pair.blocked.append(helper.make_node("Upsample", [a], ["u"], domain=NCHWC, scales=[1, 1, 2, 3], **attributes))
    pair.check(pair.reorder("ReorderOutput", "u", "y", channels=20))


def test_channels_last() -> None:
    pair = Pair(8, (1, 4, 5, 20))
    pair.plain.append(helper.make_node("Transpose", ["x"], ["r"], perm=[0, 3, 1, 2]))
    pair.blocked.append(helper.make_node("ReorderInput", ["x"], ["r"], domain=NCHWC, channels_last=1))
    a = pair.conv("r", "a", (20, 20, 3, 3))
    pair.plain.append(helper.make_node("Transpose", [a], ["y"], perm=[0, 2, 3, 1]))
    pair.blocked.append(helper.make_node("ReorderOutput", [a], ["y"], domain=NCHWC, channels=20, channels_last=1))
    pair.check("y")


def test_values_in_blocks_have_names_of_their_own() -> None:
    """ONNX Runtime's value of the same name has other elements, and must not be compared."""
    pair = Pair(8, (1, 3, 4, 4))
    a = pair.conv("x", "a", (20, 3, 1, 1), direct=True)
    model = pair.check(pair.reorder("ReorderOutput", pair.both("Relu", [a], "b"), "y", channels=20))
    names = {name for node in model.nodes for value in node.outputs for name in value.names}
    assert "y" in names
    assert not {"a", "b"} & names


def sixteen() -> onnx.ModelProto:
    """A model whose channels fit blocks of both sizes."""
    pair = Pair(16, (1, 3, 4, 4))
    a = pair.conv("x", "a", (16, 3, 1, 1), direct=True)
    pair.reorder("ReorderOutput", a, "y", channels=16)
    return pair.model(True, "y")


def test_a_size_of_blocks_that_is_not_evident_is_a_warning(tmp_path: Path) -> None:
    texts: list[str] = []
    converters.convert(sixteen(), warn=texts.append)
    assert len(texts) == 1
    assert "fit blocks of 8 and of 16 channels" in texts[0]
    path = tmp_path / "m.onnx"
    onnx.save(sixteen(), path)
    found = examine(path)
    assert found.model is not None
    assert [finding.code for finding in found.findings if finding.severity != "info"] == ["ON011"]


def test_the_model_of_the_caller_stays() -> None:
    model = sixteen()
    before = model.SerializeToString()
    converters.convert(model, warn=lambda text: None)
    assert model.SerializeToString() == before


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: m.graph.ClearField("initializer"), "input 1 is not an initializer"),
        (lambda m: m.graph.initializer[0].dims.__setitem__(0, 12), "weights of shape [12, 3, 1, 1] are not in blocks"),
        (lambda m: m.graph.initializer[1].dims.__setitem__(0, 4), "16 bytes"),
        (lambda m: m.graph.initializer[0].__setattr__("data_type", 6), "of type i32, expected f32"),
        (lambda m: m.graph.initializer[0].dims.__delitem__(slice(0, 3)), "weights of shape [1] are not in blocks"),
    ],
    ids=["no weights", "other size", "short bias", "integers", "a vector"],
)  # fmt: skip
def test_damaged_weights(change: object, message: str) -> None:
    model = sixteen()
    assert callable(change)
    change(model)
    with pytest.raises(irexec.ConversionError) as caught:
        converters.convert(model, warn=lambda text: None)
    assert message in str(caught.value) or "takes" in str(caught.value)
    found = examine(model)
    assert found.model is None
    assert "ON106" in {finding.code for finding in found.findings}
