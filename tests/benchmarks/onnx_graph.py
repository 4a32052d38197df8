"""A small builder of ONNX graphs that tracks shapes, parameters and multiply-accumulates.

Weights are declared by shape and standard deviation, and drawn only when the model is made: the parameters and the
multiply-accumulates of a network can be counted without allocating it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = 20


@dataclass(frozen=True)
class Tensor:
    """A value of the graph: its name and its shape, which is always static."""

    name: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Input:
    """An input, and how it is filled: values uniform in [low, high), as integers for i64, or the values themselves."""

    name: str
    shape: tuple[int, ...]
    integer: bool = False
    low: float = -1
    high: float = 1
    values: list[Any] | None = None


@dataclass
class Graph:
    """Nodes, inputs and weights of one network.

    Attributes:
        parameters: number of learned values.
        macs: multiply-accumulates of products and convolutions.
    """

    name: str
    parameters: int = 0
    macs: int = 0
    inputs: list[Input] = field(default_factory=list)
    outputs: list[Tensor] = field(default_factory=list)
    _nodes: list[onnx.NodeProto] = field(default_factory=list)
    _weights: dict[str, tuple[tuple[int, ...], float, float]] = field(default_factory=dict)
    _constants: list[onnx.TensorProto] = field(default_factory=list)

    def input(self, spec: Input) -> Tensor:
        self.inputs.append(spec)
        return Tensor(spec.name, spec.shape)

    def output(self, x: Tensor) -> None:
        self.outputs.append(x)

    def weight(self, shape: Sequence[int], deviation: float, mean: float = 0.0) -> Tensor:
        """A learned tensor, normally distributed."""
        name = f"weight_{len(self._weights)}"
        self._weights[name] = (tuple(shape), deviation, mean)
        self.parameters += math.prod(shape)
        return Tensor(name, tuple(shape))

    def constant(self, values: Any, dtype: type[np.generic] = np.int64) -> Tensor:
        """A tensor that is not learned: axes, shapes, masks."""
        array = np.asarray(values, dtype)
        name = f"constant_{len(self._constants)}"
        self._constants.append(numpy_helper.from_array(array, name))
        return Tensor(name, array.shape)

    def node(
        self, kind: str, inputs: Sequence[Tensor | None], *shapes: Sequence[int], **attributes: Any
    ) -> list[Tensor]:
        """A node with one output of each shape; ``None`` is an input left out."""
        outputs = [
            Tensor(f"{kind}_{len(self._nodes)}_{i}" if i else f"{kind}_{len(self._nodes)}", tuple(s))
            for i, s in enumerate(shapes)
        ]
        names = [x.name if x else "" for x in inputs]
        self._nodes.append(helper.make_node(kind, names, [x.name for x in outputs], name=outputs[0].name, **attributes))
        return outputs

    def unary(self, kind: str, x: Tensor, **attributes: Any) -> Tensor:
        return self.node(kind, [x], x.shape, **attributes)[0]

    def binary(self, kind: str, a: Tensor, b: Tensor | float) -> Tensor:
        """An element-wise operation of two tensors that broadcast, or of a tensor and a scalar."""
        b = b if isinstance(b, Tensor) else self.constant(b, np.float32)
        return self.node(kind, [a, b], np.broadcast_shapes(a.shape, b.shape))[0]

    def reshape(self, x: Tensor, *shape: int) -> Tensor:
        assert math.prod(shape) == math.prod(x.shape), (x.shape, shape)
        return self.node("Reshape", [x, self.constant(shape)], shape)[0]

    def transpose(self, x: Tensor, *order: int) -> Tensor:
        return self.node("Transpose", [x], [x.shape[i] for i in order], perm=list(order))[0]

    def concat(self, parts: Sequence[Tensor], axis: int) -> Tensor:
        shape = list(parts[0].shape)
        shape[axis] = sum(part.shape[axis] for part in parts)
        return self.node("Concat", parts, shape, axis=axis)[0]

    def split(self, x: Tensor, sizes: Sequence[int], axis: int) -> list[Tensor]:
        shapes = [[n if i == axis else length for i, length in enumerate(x.shape)] for n in sizes]
        return self.node("Split", [x, self.constant(sizes)], *shapes, axis=axis)

    def softmax(self, x: Tensor, axis: int) -> Tensor:
        return self.unary("Softmax", x, axis=axis)

    def mean(self, x: Tensor, axes: Sequence[int], keep: bool) -> Tensor:
        shape = [1 if i in axes else n for i, n in enumerate(x.shape) if keep or i not in axes]
        return self.node("ReduceMean", [x, self.constant(axes)], shape, keepdims=int(keep))[0]

    def convolution(
        self,
        x: Tensor,
        channels: int,
        kernel: int,
        stride: int = 1,
        pad: int | None = None,
        groups: int = 1,
        bias: bool = True,
        gain: float = 2.0,
    ) -> Tensor:
        """A convolution over all spatial axes, with the bias that batch normalisation folded into it leaves.

        The output's variance is ``gain`` times the mean square of the input; padded by ``kernel // 2`` unless given.
        """
        c_in, *sizes = x.shape[1:]
        spatial, pad = len(sizes), kernel // 2 if pad is None else pad
        shape = (channels, c_in // groups, *[kernel] * spatial)
        fan = math.prod(shape[1:])
        weights = [self.weight(shape, math.sqrt(gain / fan))] + ([self.weight((channels,), 0.1)] if bias else [])
        out = (x.shape[0], channels, *[(n + 2 * pad - kernel) // stride + 1 for n in sizes])
        self.macs += math.prod(out) * fan
        attributes = {
            "kernel_shape": [kernel] * spatial,
            "strides": [stride] * spatial,
            "pads": [pad] * 2 * spatial,
            "group": groups,
        }
        return self.node("Conv", [x, *weights], out, **attributes)[0]

    def transposed_convolution(
        self, x: Tensor, channels: int, kernel: int, stride: int, pad: int, gain: float = 2.0
    ) -> Tensor:
        """A two-dimensional transposed convolution with a bias."""
        c_in, *sizes = x.shape[1:]
        weight = self.weight((c_in, channels, kernel, kernel), math.sqrt(gain * stride**2 / (c_in * kernel**2)))
        out = (x.shape[0], channels, *[(n - 1) * stride + kernel - 2 * pad for n in sizes])
        self.macs += math.prod(x.shape) * channels * kernel**2
        attributes = {"kernel_shape": [kernel] * 2, "strides": [stride] * 2, "pads": [pad] * 4}
        return self.node("ConvTranspose", [x, weight, self.weight((channels,), 0.1)], out, **attributes)[0]

    def pool(self, x: Tensor, kernel: int, stride: int, pad: int = 0) -> Tensor:
        """Maximum pooling of images."""
        out = (*x.shape[:2], *[(n + 2 * pad - kernel) // stride + 1 for n in x.shape[2:]])
        return self.node("MaxPool", [x], out, kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[pad] * 4)[0]

    def matmul(self, a: Tensor, b: Tensor) -> Tensor:
        out = (*a.shape[:-1], b.shape[-1])
        self.macs += math.prod(out) * a.shape[-1]
        return self.node("MatMul", [a, b], out)[0]

    def linear(self, x: Tensor, size: int, bias: bool = True, gain: float = 1.0) -> Tensor:
        """A product with weights stored as (outputs, inputs), which OpenVINO's converter keeps as transpose_b."""
        return self.tied(x, self.weight((size, x.shape[-1]), math.sqrt(gain / x.shape[-1])), bias)

    def tied(self, x: Tensor, weight: Tensor, bias: bool = False) -> Tensor:
        """The same with a weight that may have other uses."""
        y = self.matmul(x, self.transpose(weight, 1, 0))
        return self.binary("Add", y, self.weight(weight.shape[:1], 0.1)) if bias else y

    def layer_norm(self, x: Tensor, epsilon: float) -> Tensor:
        """Normalisation of the last axis."""
        weights = [self.weight(x.shape[-1:], 0.1, 1.0), self.weight(x.shape[-1:], 0.1)]
        return self.node("LayerNormalization", [x, *weights], x.shape, axis=-1, epsilon=epsilon)[0]

    def embedding(self, indices: Tensor, count: int, size: int, deviation: float = 1.0) -> tuple[Tensor, Tensor]:
        """The rows of a table at the indices, and the table."""
        table = self.weight((count, size), deviation)
        return self.node("Gather", [table, indices], (*indices.shape, size), axis=0)[0], table

    def attend(self, q: Tensor, k: Tensor, v: Tensor, scale: float, mask: Tensor | None = None) -> Tensor:
        """Attention of (batch, heads, tokens, size) tensors in primitives; the mask is added to the scores."""
        scores = self.matmul(q, self.transpose(k, 0, 1, 3, 2))
        scores = self.binary("Mul", scores, scale) if scale != 1 else scores
        scores = self.binary("Add", scores, mask) if mask else scores
        return self.matmul(self.softmax(scores, -1), v)

    def heads(self, x: Tensor, count: int) -> Tensor:
        """(batch, tokens, features) as (batch, heads, tokens, size)."""
        batch, tokens, features = x.shape
        return self.transpose(self.reshape(x, batch, tokens, count, features // count), 0, 2, 1, 3)

    def merge_heads(self, x: Tensor) -> Tensor:
        batch, heads, tokens, size = x.shape
        return self.reshape(self.transpose(x, 0, 2, 1, 3), batch, tokens, heads * size)

    def model(self, seed: int = 0) -> onnx.ModelProto:
        """The model with its weights drawn."""
        rng = np.random.default_rng(seed)
        initializers = list(self._constants)
        for name, (shape, deviation, mean) in self._weights.items():
            values = rng.standard_normal(shape, np.float32)
            values *= np.float32(deviation)
            values += np.float32(mean)
            initializers.append(numpy_helper.from_array(values, name))
        inputs = [
            helper.make_tensor_value_info(i.name, TensorProto.INT64 if i.integer else TensorProto.FLOAT, i.shape)
            for i in self.inputs
        ]
        outputs = [helper.make_tensor_value_info(x.name, TensorProto.FLOAT, x.shape) for x in self.outputs]
        graph = helper.make_graph(self._nodes, self.name, inputs, outputs, initializers)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=9)
