"""Blocked layouts undone: graphs that ONNX Runtime saves with ORT_ENABLE_ALL have operators of com.microsoft.nchwc.

Their data has blocks of 8 or 16 channels, (N, C / block, H, W, block), and the channels of a tensor are padded to whole
blocks with zeros. The weights of convolutions are stored in blocks, too. ``without_blocks`` stores the weights and
biases as Conv of ai.onnx has them and removes padded channels, after which the operators are those of ai.onnx on (N, C,
H, W). Source: onnxruntime ``nchwc_transformer.cc`` and MLAS ``reorder.cpp``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NoReturn

import numpy as np
import onnx
from onnx import numpy_helper

from converters.onnx.graphs import describe, domain_of, every_graph, every_node, opsets_of
from converters.onnx.registry import NCHWC
from converters.onnx.tensors import constant_of
from irexec.dtypes.elements import F32
from irexec.errors import ConversionError, IrexecError
from irexec.ir.constants import constant_value

# Operators on single elements that ONNX Runtime leaves on blocked data.
_ELEMENTWISE = frozenset((
    "Add", "Sum", "Mul", "Relu", "LeakyRelu", "Sigmoid", "Tanh", "HardSigmoid", "HardSwish", "Clip", "Gelu", "FastGelu",
    "QuickGelu",
))  # fmt: skip
_INSIDE = frozenset(
    ("ReorderInput", "Conv", "MaxPool", "AveragePool", "GlobalMaxPool", "GlobalAveragePool", "Upsample")
)


def without_blocks(model: onnx.ModelProto, folder: Path | None, warn: Callable[[str], object]) -> onnx.ModelProto:
    """The model, or a copy of it in which the data of nodes of com.microsoft.nchwc is (N, C, H, W).

    Args:
        model: the model, with functions inlined.
        folder: the folder of its external data.
        warn: called if the size of the blocks is not evident from the model.

    Raises:
        ConversionError: the weights of a node are not constants, or their shape is not that of blocks.
    """
    if all(domain_of(node) != NCHWC for node in every_node(model.graph)):
        return model
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    tensors = _Tensors(changed, folder)
    graphs = [
        _BlockedGraph(graph, tensors) for graph in every_graph(changed.graph) if isinstance(graph, onnx.GraphProto)
    ]
    found = {block for graph in graphs for block in graph.evident_blocks()}
    if len(found) > 1:
        raise ConversionError("nodes of com.microsoft.nchwc have blocks of 8 and of 16 channels in one model")
    block = found.pop() if found else _block_of_processor(warn)
    for graph in graphs:
        graph.rewrite(block)
    tensors.drop_unread()
    return changed


def _block_of_processor(warn: Callable[[str], object]) -> int:
    """The size of the blocks that ONNX Runtime has on this processor."""
    features = getattr(getattr(np, "_core", None), "_multiarray_umath", None)
    has: dict[str, bool] = getattr(features, "__cpu_features__", {})
    block = 16 if any(has.get(name) for name in ("AVX512F", "X86_V4", "ASIMD")) else 8
    warn(
        f"the weights of com.microsoft.nchwc fit blocks of 8 and of 16 channels: {block} is assumed, as ONNX Runtime "
        f"has it on this processor (8 with AVX2, 16 with AVX-512 and on ARM)"
    )
    return block


class _Tensors:
    """The initializers of a model, also of its subgraphs, by name."""

    def __init__(self, model: onnx.ModelProto, folder: Path | None) -> None:
        self._model, self._folder, self._opsets = model, folder, opsets_of(model)
        self._by_name: dict[str, onnx.TensorProto] = {}
        self._replaced: set[str] = set()
        for graph in every_graph(model.graph):
            if isinstance(graph, onnx.GraphProto):
                self._by_name |= {tensor.name: tensor for tensor in graph.initializer}

    def shape(self, node: onnx.NodeProto, index: int) -> tuple[int, ...]:
        """The shape of an input of a node.

        Raises:
            ConversionError: the input is not a constant.
        """
        name = node.input[index] if index < len(node.input) else ""
        if name not in self._by_name:
            self.refuse(node, f"input {index} is not an initializer")
        return tuple(self._by_name[name].dims)

    def array(self, node: onnx.NodeProto, index: int) -> np.ndarray:
        """The elements of an input of a node; errors are those of ``shape``."""
        self.shape(node, index)
        try:
            constant = constant_of(self._by_name[node.input[index]], self._folder)
            if constant.element is not F32:
                self.refuse(node, f"input {index} is of type {constant.element}, expected f32")
            return constant_value(constant)
        except IrexecError as error:
            self.refuse(node, str(error))

    def replace(self, node: onnx.NodeProto, index: int, graph: onnx.GraphProto, array: np.ndarray) -> None:
        """Make ``array`` the input of a node, as an initializer of ``graph``."""
        self._replaced.add(node.input[index])
        name = f"{node.output[0]}/{'weights' if index == 1 else 'bias'}"
        graph.initializer.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        node.input[index] = name

    def drop_unread(self) -> None:
        """Remove the initializers in blocks that no node reads."""
        read = {name for node in every_node(self._model.graph) for name in node.input}
        for graph in every_graph(self._model.graph):
            unread = [t for t in graph.initializer if t.name in self._replaced - read]
            for tensor in unread:
                graph.initializer.remove(tensor)

    def refuse(self, node: onnx.NodeProto, problem: str) -> NoReturn:
        raise ConversionError(f"{describe(node, self._opsets)}: {problem}")


class _BlockedGraph:
    """One graph. Tensors with the same channels, of layers that compute channel by channel, are one group."""

    def __init__(self, graph: onnx.GraphProto, tensors: _Tensors) -> None:
        self.graph, self.tensors = graph, tensors
        self._convolutions = [node for node in graph.node if _is(node, "Conv")]
        self._group_of: dict[str, str] = {}
        self._whole: set[str] = set()
        known = -1
        while len(self._group_of) > known:
            # Nodes may come before their producers.
            known = len(self._group_of)
            self._extend_groups()
        self._whole = {self._root(name) for name in self._whole}
        self._sizes = {self._root(name): size for name, size in self._padded_sizes()}
        self._declared = {
            self._root(node.input[0]): _integer(node, "channels", 0)
            for node in graph.node
            if _is(node, "ReorderOutput") and node.input[0] in self._group_of
        }

    def evident_blocks(self) -> Iterator[int]:
        """The sizes of blocks that the channels of the graph show."""
        for size in self._sizes.values():
            if size % 16 == 8:
                yield 8
        for name, channels in self._declared.items():
            if self._sizes.get(name, 0) - channels >= 8:
                yield 16
        for node in self._convolutions:
            if not self._is_blocked(node) and 8 <= self._shape(node)[1] < 16:
                yield 16

    def rewrite(self, block: int) -> None:
        """Change the weights of all nodes, and the names of blocked tensors."""
        arrays = {id(node): self._weights(node, block) for node in self._convolutions}
        channels = {root: self._channels(root, block, arrays) for root in self._sizes}
        for node in self._convolutions:
            self._rewrite_convolution(node, *arrays[id(node)], channels)
        # Tensors of these names have other elements in ONNX Runtime.
        for node in self.graph.node:
            for names in (node.input, node.output):
                for i, name in enumerate(names):
                    if name in self._group_of:
                        names[i] = f"{name}/nchw"
        stale = [info for info in self.graph.value_info if info.name in self._group_of]
        for info in stale:
            self.graph.value_info.remove(info)

    def _extend_groups(self) -> None:
        for node in self.graph.node:
            if _is(node, *_INSIDE):
                self._group_of.setdefault(node.output[0], node.output[0])
            if _is(node, "ReorderInput") or not any(name in self._group_of for name in node.input):
                continue
            if _is(node, "Conv"):
                self._join([*node.input[3:4], node.output[0]])
                if self._is_depthwise(node):
                    self._join([node.input[0], node.output[0]])
                elif _integer(node, "group", 1) > 1:
                    self._whole |= {node.input[0], node.output[0]}
            elif _is(node, *_INSIDE) or node.op_type in _ELEMENTWISE:
                self._group_of.setdefault(node.output[0], node.output[0])
                self._join([*node.input, node.output[0]])
            elif domain_of(node) != NCHWC:
                for name in filter(None, node.output):
                    self._group_of.setdefault(name, name)
                self._whole |= {name for name in (*node.input, *node.output) if name in self._group_of}

    def _root(self, name: str) -> str:
        while self._group_of[name] != name:
            name = self._group_of[name]
        return name

    def _join(self, names: Iterable[str]) -> None:
        roots = {self._root(name) for name in names if name in self._group_of}
        if roots:
            self._group_of |= dict.fromkeys(roots, min(roots))

    def _is_blocked(self, node: onnx.NodeProto) -> bool:
        """Whether the data of a convolution is in blocks. Few channels are read as (N, C, H, W)."""
        return node.input[0] in self._group_of

    def _is_depthwise(self, node: onnx.NodeProto) -> bool:
        return _integer(node, "group", 1) > 1 and self._shape(node)[1] == 1

    def _shape(self, node: onnx.NodeProto) -> tuple[int, ...]:
        """The shape of the weights of a convolution; refused if they cannot be in blocks."""
        shape = self.tensors.shape(node, 1)
        if len(shape) < 3 or 0 in shape or shape[0] % 8:
            self.tensors.refuse(node, f"weights of shape {list(shape)} are not in blocks")
        return shape

    def _padded_sizes(self) -> Iterator[tuple[str, int]]:
        """Tensors with their numbers of channels, padding included, as the weights have them."""
        for node in self._convolutions:
            shape = self._shape(node)
            yield node.output[0], shape[0]
            if self._is_blocked(node):
                yield node.input[0], shape[1] * _integer(node, "group", 1)

    def _weights(self, node: onnx.NodeProto, block: int) -> tuple[np.ndarray, np.ndarray | None]:
        """The weights of a convolution as (O, I, H, W), and the bias, with the padded channels."""
        array = self.tensors.array(node, 1)
        in_pairs = self._is_blocked(node) and not self._is_depthwise(node)
        outputs, inputs, *kernel = array.shape
        if outputs % block or (in_pairs and inputs % block):
            self.tensors.refuse(node, f"weights of shape {list(array.shape)} are not in blocks of {block}")
        rank = len(kernel)
        if in_pairs:
            split = array.reshape(outputs // block, inputs // block, *kernel, block, block)
            order = [0, rank + 3, 1, rank + 2, *range(2, rank + 2)]
        else:
            split = array.reshape(outputs // block, inputs, *kernel, block)
            order = [0, rank + 2, 1, *range(2, rank + 2)]
        bias = self.tensors.array(node, 2) if len(node.input) > 2 and node.input[2] else None
        if bias is not None and bias.shape != (outputs,):
            self.tensors.refuse(node, f"a bias of shape {list(bias.shape)} for {outputs} channels")
        return split.transpose(order).reshape(array.shape), bias

    def _channels(self, root: str, block: int, arrays: dict[int, tuple[np.ndarray, np.ndarray | None]]) -> int:
        """The number of channels of a group without those that are padded.

        A ReorderOutput has it. Without one, channels count up to the last that is computed or read: the others are
        multiplied by zeros.
        """
        size = self._sizes[root]
        if root in self._whole:
            return size
        if root in self._declared:
            return self._declared[root]
        used = size - block + 1
        for node in self._convolutions:
            weights, bias = arrays[id(node)]
            if self._root(node.output[0]) == root:
                rows = [weights.reshape(len(weights), -1)] + ([] if bias is None else [bias[:, None]])
                used = max(used, _last(np.concatenate(rows, 1)))
            if self._is_blocked(node) and self._root(node.input[0]) == root and not self._is_depthwise(node):
                used = max(used, _last(weights.swapaxes(0, 1).reshape(weights.shape[1], -1)))
        return used

    def _rewrite_convolution(
        self, node: onnx.NodeProto, weights: np.ndarray, bias: np.ndarray | None, channels: dict[str, int]
    ) -> None:
        outputs = channels[self._root(node.output[0])]
        if self._is_depthwise(node):
            for attribute in node.attribute:
                attribute.i = outputs if attribute.name == "group" else attribute.i
        elif self._is_blocked(node) and _integer(node, "group", 1) == 1:
            weights = weights[:, : channels[self._root(node.input[0])]]
        self.tensors.replace(node, 1, self.graph, weights[:outputs])
        if bias is not None:
            self.tensors.replace(node, 2, self.graph, bias[:outputs])


def _is(node: onnx.NodeProto, *types: str) -> bool:
    """Whether a node is of com.microsoft.nchwc and of one of these types."""
    return domain_of(node) == NCHWC and node.op_type in types


def _integer(node: onnx.NodeProto, name: str, default: int) -> int:
    return next((attribute.i for attribute in node.attribute if attribute.name == name), default)


def _last(rows: np.ndarray) -> int:
    """Number of rows up to the last that is not zero."""
    used = np.flatnonzero(rows.any(1))
    return int(used[-1]) + 1 if used.size else 0
