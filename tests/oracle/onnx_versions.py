"""Random nodes of every version of every operator of ai.onnx and ai.onnx.ml, beside ONNX Runtime and onnx.reference.

    python -m tests.oracle.onnx_versions [--seed N] [--count 5] [--only Resize[-10]] [--time SECONDS]

Types, shapes and attributes are random among those of the schema. A node that neither of the two runs is counted and not
judged; a result counts as right if ONNX Runtime has it, or onnx.reference where ONNX Runtime refuses the node. Prints each
other case that no reason explains, and each that irexec refuses although one of them runs it. A seed and --only show a case
again. Exit 1 if there is one.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import onnx
from onnx import defs, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import irexec
from converters.onnx.reference import _flattening
from converters.onnx.registry import find
from tests.oracle import onnx_ml

Schema = Any
Results = list[np.ndarray] | str

# Operators with subgraphs, sequences, random values and audio or image files have tests of their own.
_LEFT_OUT = {
    "If", "Loop", "Scan", "SequenceMap", "ImageDecoder", "Bernoulli", "Multinomial", "Dropout", "RandomNormal",
    "RandomNormalLike", "RandomUniform", "RandomUniformLike", "StringNormalizer", "TfIdfVectorizer",
    "Constant", "Optional", "SequenceEmpty", "SequenceConstruct", "SplitToSequence",
}  # fmt: skip
_TYPES = {
    "float": np.float32, "double": np.float64, "float16": np.float16, "int32": np.int32, "int64": np.int64,
    "int8": np.int8, "uint8": np.uint8, "bool": np.bool_, "int16": np.int16, "uint16": np.uint16, "uint32": np.uint32,
    "uint64": np.uint64,
}  # fmt: skip


class Draw:
    """One random node of an operator.

    Attributes:
        shape: the shape of the first input.
        feeds: the inputs by name.
        constants: the names of the inputs that are initializers.
    """

    def __init__(self, schema: Schema, rng: np.random.Generator) -> None:
        self.schema, self.rng = schema, rng
        self.shape = tuple(int(size) for size in rng.integers(1, 6, self._rank()))
        self.feeds: dict[str, np.ndarray] = {}
        self.constants: set[str] = set()
        self.types = {
            constraint.type_param_str: self._type(constraint.allowed_type_strs)
            for constraint in schema.type_constraints
        }

    def _rank(self) -> int:
        windows = (
            "Conv", "Pool", "LRN", "Instance", "Batch", "Upsample", "Resize", "Depth", "Spatial", "Group", "Mean",
            "LpPool", "Shuffle",
        )  # fmt: skip
        if any(part in self.schema.name for part in windows):
            return 4
        if self.schema.name in ("Gemm", "EyeLike") or self.schema.domain:
            return 2
        return 3 if self.schema.name in ("RNN", "LSTM", "GRU", "STFT") else int(self.rng.integers(1, 5))

    def _type(self, allowed: Any) -> Any:
        known = [name for name in _TYPES if f"tensor({name})" in allowed]
        if not known:
            return None
        return _TYPES[known[0]] if self.rng.random() < 0.6 else _TYPES[known[int(self.rng.integers(len(known)))]]

    def model(self) -> onnx.ModelProto:
        """The model of the node."""
        inputs, many = [], int(self.rng.integers(1, 4))
        for position, formal in enumerate(self.schema.inputs):
            variadic = formal.option == defs.OpSchema.FormalParameterOption.Variadic
            optional = formal.option == defs.OpSchema.FormalParameterOption.Optional
            # Only one of the two may be given.
            excluded = self.schema.name == "Resize" and formal.name == "sizes" and "scales" in inputs
            if (optional and self.rng.random() < 0.4) or excluded:
                inputs.append("")
                continue
            for copy in range(many if variadic else 1):
                name = f"{formal.name}{copy}" if variadic else formal.name
                inputs.append(name)
                self.feeds[name] = self._input(position + copy, formal)
        while inputs and not inputs[-1]:
            inputs.pop()
        attributes = {
            name: value
            for name, attribute in self.schema.attributes.items()
            if attribute.required or self.rng.random() < 0.4
            if (value := self._attribute(name, attribute)) is not None
        }
        if self.schema.name in onnx_ml.NAMES:
            attributes = onnx_ml.attributes(self.schema.name, next(iter(self.feeds.values())), self.rng)
            attributes = {name: value for name, value in attributes.items() if name in self.schema.attributes}
        outputs = [f"out{i}" for i in range(max(1, self.schema.min_output))]
        node = helper.make_node(self.schema.name, inputs, outputs, "node", domain=self.schema.domain, **attributes)
        infos = [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
            for name, x in self.feeds.items() if name not in self.constants
        ]  # fmt: skip
        fixed = [numpy_helper.from_array(x, name) for name, x in self.feeds.items() if name in self.constants]
        graph = helper.make_graph([node], "g", infos, [onnx.ValueInfoProto(name=name) for name in outputs], fixed)
        opsets = [helper.make_opsetid("", 17 if self.schema.domain else self.schema.since_version)]
        if self.schema.domain:
            opsets.append(helper.make_opsetid(self.schema.domain, self.schema.since_version))
        return helper.make_model(graph, opset_imports=opsets, ir_version=8)

    def _input(self, position: int, formal: Any) -> np.ndarray:
        given = _INPUTS.get((self.schema.name, formal.name)) or _INPUTS.get(("", formal.name))
        kind = self.types.get(formal.type_str, np.float32 if "float" in formal.type_str else np.int64)
        if given is not None:
            value = np.asarray(given(self))
            if value.dtype.kind == "i" and kind in (np.int32, np.int64):
                value = value.astype(kind)
            if self.rng.random() < 0.7 or self.schema.name in ("Reshape", "Expand", "Tile"):
                self.constants.add(formal.name)
            return value
        if kind is None:
            raise NotImplementedError(formal.type_str)
        shape = self.shape if position == 0 or self.rng.random() < 0.7 else self._stretched()
        return self.values(shape, kind)

    def _stretched(self) -> tuple[int, ...]:
        """A shape that broadcasts to that of the first input."""
        kept = self.shape[int(self.rng.integers(len(self.shape) + 1)) :]
        return tuple(size if self.rng.random() < 0.6 else 1 for size in kept)

    def values(self, shape: tuple[int, ...], kind: Any) -> np.ndarray:
        if kind is np.bool_:
            return self.rng.random(shape) < 0.5
        if np.dtype(kind).kind == "f":
            return np.round(self.rng.normal(0, 2, shape), 2).astype(kind)
        return self.rng.integers(0 if np.dtype(kind).kind == "u" else -5, 9, shape).astype(kind)

    def axis(self) -> int:
        return int(self.rng.integers(-len(self.shape), len(self.shape)))

    def axes(self) -> list[int]:
        count = int(self.rng.integers(1, len(self.shape) + 1))
        return sorted(int(axis) for axis in self.rng.permutation(len(self.shape))[:count])

    def _attribute(self, name: str, attribute: Any) -> Any:
        kinds = defs.OpSchema.AttrType
        if name in _ATTRIBUTES:
            return _ATTRIBUTES[name](self)
        if attribute.type == kinds.INT:
            return int(self.rng.integers(0, 2))
        if attribute.type == kinds.FLOAT:
            return float(np.round(self.rng.uniform(0.05, 1.5), 2))
        if attribute.type == kinds.STRING:
            translation = find(self.schema.name, self.schema.domain, self.schema.since_version)
            choices = list(translation.choices.get(name, ())) if translation is not None else []
            if choices:
                return choices[int(self.rng.integers(len(choices)))]
            return _TEXTS[name](self) if name in _TEXTS else None
        if attribute.type == kinds.FLOATS:
            return [float(x) for x in np.round(self.rng.uniform(0.1, 1.0, self.shape[-1]), 2)]
        return None


def _pick(*values: Any) -> Callable[[Draw], Any]:
    return lambda draw: values[int(draw.rng.integers(len(values)))]


def _ints(low: int, high: int, length: int) -> Callable[[Draw], list[int]]:
    return lambda draw: [int(x) for x in draw.rng.integers(low, high, length)]


def _scales(draw: Draw) -> np.ndarray:
    spatial = draw.rng.choice([0.5, 0.6, 1.0, 1.5, 1.7, 2.0, 3.0], 2)
    if draw.schema.name == "Upsample":
        spatial = np.maximum(spatial, 1)
    return np.array([1, 1, *spatial][: len(draw.shape)], np.float32)


# fmt: off
_ATTRIBUTES: dict[str, Callable[[Draw], Any]] = {
    "axis": Draw.axis, "axes": Draw.axes, "perm": lambda d: [int(x) for x in d.rng.permutation(len(d.shape))],
    "kernel_shape": _ints(1, 4, 2), "strides": _ints(1, 3, 2), "dilations": _ints(1, 3, 2), "pads": lambda d: _ints(0, 2, 2 * len(d.shape))(d) if d.schema.name == "Pad" else [_pick(0, 1)(d)] * 4,
    "paddings": lambda d: _ints(0, 3, 2 * len(d.shape))(d), "output_padding": _ints(0, 1, 2), "output_shape": lambda d: None,
    "to": lambda d: "FLOAT" if d.schema.since_version < 6 else _pick(1, 2, 3, 6, 7, 9, 10, 11)(d), "dtype": _pick(1, 6, 7, 11), "blocksize": _pick(1, 2), "group": _pick(1, 1, 2),
    "scales": lambda d: [float(x) for x in _scales(d)], "height_scale": _pick(1.0, 2.0, 2.5), "width_scale": _pick(1.0, 2.0, 3.0), "consumed_inputs": lambda d: None,
    "starts": lambda d: [0] * len(d.shape), "ends": lambda d: [int(x) for x in d.rng.integers(-1, 6, len(d.shape))], "split": lambda d: None, "shape": lambda d: [-1],
    "size": _pick(1, 3, 5), "k": _pick(1, 1), "p": _pick(1, 2), "equation": lambda d: "...i->...", "num_outputs": lambda d: None, "repeats": lambda d: None, "value": lambda d: numpy_helper.from_array(d.values((2, 3), np.float32)),
    "auto_pad": _pick("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"), "mode": lambda d: _TEXTS["mode"](d), "ceil_mode": _pick(0, 1), "storage_order": _pick(0, 0), "hidden_size": lambda d: 3,
    "sparse_value": lambda d: None, "batch_dims": _pick(0, 0), "direction": lambda d: "LEFT" if d.schema.name == "BitShift" else None, "activations": lambda d: None, "layout": lambda d: None,
    "is_test": _pick(1), "training_mode": _pick(0), "spatial": _pick(1), "keep_aspect_ratio_policy": _pick("stretch", "not_larger"), "classlabels_ints": lambda d: [4, 7], "classlabels_strings": lambda d: None,
    "coefficients": lambda d: [float(x) for x in d.rng.normal(size=2 * d.shape[-1])], "intercepts": lambda d: [0.5, -0.25], "targets": _pick(2), "post_transform": _pick("NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"), "multi_class": _pick(0),
    "num_groups": _pick(1), "epsilon": _pick(1e-5, 1e-2), "saturate": _pick(1), "select_last_index": _pick(0, 1), "imputed_value_int64s": lambda d: None, "replaced_value_int64": lambda d: None, "offset": lambda d: [0.5], "scale": lambda d: 2.0 if d.schema.name == "ImageScaler" else [0.5],
    "broadcast": _pick(1), "output_height": _pick(2), "output_width": _pick(3), "sampling_ratio": _pick(1, 2), "spatial_scale": _pick(1.0, 0.5), "pooled_shape": lambda d: [2, 2], "cats_int64s": lambda d: [-1, 0, 1, 2, 3], "cats_strings": lambda d: None, "norm": _pick("MAX", "L1", "L2"),
}
_TEXTS: dict[str, Callable[[Draw], Any]] = {
    "mode": lambda d: _pick("nearest", "linear", "cubic")(d) if d.schema.name == "Resize" else _pick("nearest", "linear")(d) if d.schema.name == "Upsample" else _pick("constant", "reflect", "edge")(d) if d.schema.name == "Pad" else "DCR" if d.schema.name == "DepthToSpace" else None,
    "coordinate_transformation_mode": lambda d: _pick("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel")(d) if d.schema.name == "Resize" else None,
    "nearest_mode": _pick("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"), "approximate": _pick("none", "tanh"), "reduction": _pick("none", "add", "mul"),
}
_INPUTS: dict[tuple[str, str], Callable[[Draw], Any]] = {
    ("", "axes"): lambda d: np.array(d.axes()), ("", "axis"): lambda d: np.array(d.axis()), ("Reshape", "shape"): lambda d: np.array([0, -1] if len(d.shape) > 1 else [-1]), ("Expand", "shape"): lambda d: np.array([2, *d.shape]),
    ("ConstantOfShape", "input"): lambda d: np.array(d.shape), ("Tile", "repeats"): lambda d: d.rng.integers(1, 3, len(d.shape)), ("Tile", "tiles"): lambda d: np.array(2, np.float32), ("Tile", "axis"): lambda d: np.array(0, np.float32), ("Pad", "pads"): lambda d: d.rng.integers(-1, 2, 2 * len(d.shape)), ("Pad", "constant_value"): lambda d: d.values((), d.types.get("T", np.float32)),
    ("", "indices"): lambda d: d.rng.integers(0, min(d.shape), d.shape), ("Gather", "indices"): lambda d: d.rng.integers(0, min(d.shape), (2, 2)), ("GatherND", "indices"): lambda d: d.rng.integers(0, min(d.shape), (2, 1)), ("ScatterND", "indices"): lambda d: d.rng.permutation(d.shape[0])[:1, None], ("ScatterND", "updates"): lambda d: d.values((1, *d.shape[1:]), d.types["T"]),
    ("TopK", "K"): lambda d: np.array([1]), ("", "split"): lambda d: np.array([1, d.shape[0] - 1]), ("", "scales"): _scales, ("Resize", "sizes"): lambda d: np.array([*d.shape[:2], 4, 7]), ("ReverseSequence", "sequence_lens"): lambda d: d.rng.integers(1, d.shape[0] + 1, d.shape[1] if len(d.shape) > 1 else 1), ("Resize", "roi"): lambda d: np.zeros(0, np.float32),
    ("", "starts"): lambda d: np.array([int(d.rng.integers(-2, 3))]), ("", "ends"): lambda d: np.array([int(d.rng.integers(-1, 6))]), ("", "steps"): lambda d: np.array([int(_pick(1, 2, -1)(d))]), ("Slice", "axes"): lambda d: np.array([d.axis()]),
    ("OneHot", "indices"): lambda d: d.rng.integers(-3, 4, d.shape), ("OneHot", "depth"): lambda d: np.array(4), ("OneHot", "values"): lambda d: np.array([0, 3]).astype(d.types.get("T3") or np.float32), ("Range", "start"): lambda d: np.array(1).astype(d.types["T"]), ("Range", "limit"): lambda d: np.array(9).astype(d.types["T"]), ("Range", "delta"): lambda d: np.array(3).astype(d.types["T"]),
    ("Conv", "W"): lambda d: d.values((4, d.shape[1], 3, 2), d.types["T"]), ("Conv", "B"): lambda d: d.values((4,), d.types["T"]), ("ConvTranspose", "W"): lambda d: d.values((d.shape[1], 2, 3, 2), d.types["T"]), ("ConvTranspose", "B"): lambda d: d.values((2,), d.types["T"]),
    ("Gemm", "B"): lambda d: d.values((d.shape[1], 3), d.types["T"]), ("Gemm", "C"): lambda d: d.values((3,), d.types["T"]), ("MatMul", "B"): lambda d: d.values((d.shape[-1], 3), d.types["T"]), ("PRelu", "slope"): lambda d: d.values(d.shape[-1:], d.types["T"]),
    ("BatchNormalization", "scale"): lambda d: d.values(d.shape[1:2], d.types["T"]), ("BatchNormalization", "B"): lambda d: d.values(d.shape[1:2], d.types["T"]), ("BatchNormalization", "mean"): lambda d: d.values(d.shape[1:2], d.types["T"]), ("BatchNormalization", "var"): lambda d: abs(d.values(d.shape[1:2], d.types["T"])) + 1,
    ("InstanceNormalization", "scale"): lambda d: d.values(d.shape[1:2], d.types["T"]), ("InstanceNormalization", "B"): lambda d: d.values(d.shape[1:2], d.types["T"]), ("BatchNormalization", "input_mean"): lambda d: abs(d.values(d.shape[1:2], np.float32)) + 1, ("BatchNormalization", "input_var"): lambda d: abs(d.values(d.shape[1:2], np.float32)) + 1, ("BatchNormalization", "running_mean"): lambda d: abs(d.values(d.shape[1:2], np.float32)) + 1, ("BatchNormalization", "running_variance"): lambda d: abs(d.values(d.shape[1:2], np.float32)) + 1, ("BatchNormalization", "saved_mean"): lambda d: abs(d.values(d.shape[1:2], np.float32)) + 1, ("CumSum", "axis"): lambda d: np.array(d.axis()), ("Trilu", "k"): lambda d: np.array(int(d.rng.integers(-2, 3))), ("Clip", "min"): lambda d: np.array(-1 if np.dtype(d.types["T"]).kind != "u" else 1).astype(d.types["T"]), ("Clip", "max"): lambda d: np.array(2).astype(d.types["T"]),
    ("Compress", "condition"): lambda d: d.rng.random(d.shape[0]) < 0.5, ("RNN", "W"): lambda d: d.values((1, 3, d.shape[2]), np.float32), ("RNN", "R"): lambda d: d.values((1, 3, 3), np.float32), ("GRU", "W"): lambda d: d.values((1, 9, d.shape[2]), np.float32), ("GRU", "R"): lambda d: d.values((1, 9, 3), np.float32), ("LSTM", "W"): lambda d: d.values((1, 12, d.shape[2]), np.float32), ("LSTM", "R"): lambda d: d.values((1, 12, 3), np.float32),
}
# fmt: on


def _has_no_window(draw: Draw, given: dict[str, Any]) -> bool:
    """Whether the dilated kernel is larger than the padded data."""
    kernels = given.get("kernel_shape") or draw.feeds["W"].shape[2:]
    count = len(kernels)
    pads, dilations = given.get("pads", [0] * 2 * count), given.get("dilations", [1] * count)
    padded = [size + pads[i] + pads[count + i] for i, size in enumerate(draw.shape[2:])]
    windows = zip(kernels, dilations, padded, strict=True)
    return any((kernel - 1) * dilation + 1 > size for kernel, dilation, size in windows)


# Differences from onnx.reference 1.23 and ONNX Runtime 1.32 that are not ours: operators, condition on the case, reason.
# fmt: off
_EXPLAINED: list[tuple[set[str], Callable[[Draw, dict[str, Any]], bool], str]] = [
    ({"Optional"}, lambda d, a: True, "onnx.reference adds an axis"),
    ({"RMSNormalization"}, lambda d, a: d.types["T"] is not d.types["V"], "the result has the type of the scale"),
    ({"LinearClassifier"}, lambda d, a: "intercepts" not in a, "ONNX Runtime refuses, and onnx.reference gives NaN"),
    ({"Unique"}, lambda d, a: a.get("sorted") == 0, "onnx.reference sorts always"),
    ({"MaxPool", "AveragePool", "LpPool"}, lambda d, a: a.get("auto_pad", "").startswith("SAME") and any(n > 1 for n in a.get("dilations", ())), "the padding follows from the dilated kernel; the runtimes leave dilations out"),
    ({"LpPool"}, lambda d, a: any(n > 1 for n in a.get("dilations", ())), "onnx.reference leaves dilations out of the size of the result"),
    ({"AveragePool", "MaxPool", "LpPool", "Conv"}, _has_no_window, "a window that is larger than the data; ONNX Runtime gives no element, or one"),
    ({"LinearRegressor"}, lambda d, a: len(a["coefficients"]) != d.shape[-1] * a.get("targets", 1), "more coefficients than the targets have; ONNX Runtime takes the first"),
    ({"MaxPool", "AveragePool"}, lambda d, a: any(n >= k for n, k in zip(a.get("pads", ()), a["kernel_shape"] * 2, strict=False)), "windows of padding alone, which ONNX Runtime refuses: 0 or NaN in onnx.reference"),
    ({"MaxPool", "AveragePool", "ConvTranspose"}, lambda d, a: a.get("auto_pad", "NOTSET") != "NOTSET" and "pads" in a, "both auto_pad and pads"),
    ({"AveragePool"}, lambda d, a: d.schema.since_version == 1, "padding is not counted; onnx.reference counts it"),
    ({"LRN"}, lambda d, a: True, "onnx.reference loops over samples instead of channels"),
    ({"LpNormalization"}, lambda d, a: a.get("p") == 1, "onnx.reference sums values instead of magnitudes"),
    ({"Erf"}, lambda d, a: np.dtype(d.types["T"]).kind != "f", "functions of integers are rounded in IR"),
    ({"GridSample"}, lambda d, a: np.dtype(d.types["T1"]).kind != "f", "onnx.reference computes the weights of pixels in the type of the data: 0 for integers"),
    ({"Add", "Sub", "Mul", "Div", "Pow", "And", "Or", "Xor", "Less", "Greater", "Equal"}, lambda d, a: d.schema.since_version < 7 and "axis" in a, "the second input does not fit at the axis, which onnx.reference does not read"),
    ({"PRelu"}, lambda d, a: d.schema.since_version < 7, "the slope is per channel before opset 7"),
    ({"QLinearMatMul", "QuantizeLinear", "DequantizeLinear"}, lambda d, a: True, "random scales and zero points of shapes and values that the specification does not have"),
    ({"Compress"}, lambda d, a: True, "a condition longer than the axis"),
    ({"Equal"}, lambda d, a: d.schema.since_version < 7, "the second input is larger than the first"),
    ({"ReduceLogSumExp"}, lambda d, a: np.dtype(d.types["T"]).kind != "f", "ONNX Runtime truncates between the steps"),
    ({"Resize"}, lambda d, a: np.dtype(d.types.get("T", d.types.get("T1"))).kind != "f", "cubic curves of integers beyond their range"),
    ({"BlackmanWindow", "HannWindow", "HammingWindow"}, lambda d, a: d.shape != (), "a size that is not a scalar"),
    ({"LabelEncoder"}, lambda d, a: True, "keys of another type than the input"),
    ({"Resize"}, lambda d, a: a.get("exclude_outside") == 1 and a.get("mode", "nearest") != "cubic", "exclude_outside belongs to cubic; ONNX Runtime refuses it with another mode"),
    ({"GRU"}, lambda d, a: len(a.get("activation_alpha", ())) > 0 or len(a.get("activation_beta", ())) > 0, "parameters of activations without activations"),
    ({"MaxPool", "AveragePool", "LpPool"}, lambda d, a: a.get("auto_pad", "").startswith("SAME") and any(s > k for s, k in zip(a.get("strides", ()), a["kernel_shape"], strict=False)), "onnx.reference pads by a negative number, which ONNX Runtime refuses"),
    ({"TreeEnsembleRegressor", "TreeEnsembleClassifier"}, lambda d, a: len(a.get("base_values", ())) > 1, "ONNX Runtime leaves out the base value of a target without a weight"),
    ({"TreeEnsemble", "TreeEnsembleRegressor"}, lambda d, a: a.get("n_targets") == 1 and a["post_transform"] not in (0, "NONE"), "onnxruntime#26596: the score of a single target is not transformed"),
    ({"TreeEnsemble"}, lambda d, a: a["post_transform"] in (1, 2), "ONNX Runtime takes 1 for LOGISTIC and 2 for SOFTMAX; in the specification they are the other way round"),
    ({"TreeEnsembleClassifier"}, lambda d, a: set(a["class_ids"]) == {0, 1}, "where a leaf has no weight for the second of two classes, the label of ONNX Runtime is 0 or 1, whatever the labels are"),
    ({"TreeEnsembleClassifier", "SVMClassifier"}, lambda d, a: a.get("post_transform", "").startswith("SOFTMAX") and len(a.get("classlabels_ints") or a.get("classlabels_int64s") or a.get("classlabels_strings")) == 2, "both scores are transformed, as the specification has it; ONNX Runtime does not"),
]
# Differences from onnx.reference where ONNX Runtime does not run the case.
_OF_REFERENCE: list[tuple[set[str], Callable[[Draw, dict[str, Any]], bool], str]] = [
    ({"GRU", "LSTM", "RNN"}, lambda d, a: "clip" in a, "onnx.reference leaves out clip"),
    ({"TreeEnsemble", "TreeEnsembleRegressor"}, lambda d, a: True, "onnx.reference has no post_transform, results of the input's type, and the largest number for a target without a weight"),
    ({"SVMRegressor"}, lambda d, a: d.types["T"] is not np.float32, "onnx.reference gives f64, or no post_transform"),
    ({"Add", "Sub", "Mul", "Div", "Pow", "And", "Or", "Xor", "Less", "Greater", "Equal"}, lambda d, a: d.schema.since_version < 7 and "axis" in a, "the second input does not fit at the axis, which onnx.reference does not read"),
    ({"PRelu"}, lambda d, a: d.schema.since_version < 7, "the slope is per channel before opset 7"),
    ({"RNN", "GRU", "LSTM"}, lambda d, a: "sequence_lens" in d.feeds, "onnx.reference does not read sequence_lens, whatever its shape"),
    ({"QuantizeLinear", "DequantizeLinear"}, lambda d, a: True, "blocks and axes that the data do not have"),
]
# fmt: on


def explained(draw: Draw, node: onnx.NodeProto, runtime: Results) -> str | None:
    """The reason of a known difference."""
    given = {each.name: helper.get_attribute_value(each) for each in node.attribute}
    given = {name: value.decode() if isinstance(value, bytes) else value for name, value in given.items()}
    for operators, condition, reason in _EXPLAINED + (_OF_REFERENCE if isinstance(runtime, str) else []):
        if node.op_type in operators and condition(draw, given):
            return reason
    return None


def schemas() -> Iterator[Schema]:
    """The schema of every version of the operators, in a fixed order."""
    found = [each for each in defs.get_all_schemas_with_history() if each.domain in ("", "ai.onnx.ml")]
    for schema in sorted(found, key=lambda one: (one.domain, one.name, one.since_version)):
        if not schema.deprecated and schema.name not in _LEFT_OUT:
            yield schema


def answers(model: onnx.ModelProto, feeds: dict[str, np.ndarray]) -> dict[str, Results]:
    """The results of irexec, ONNX Runtime and onnx.reference, or the errors."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    old = max((each.version for each in model.opset_import if not each.domain), default=1) < 13
    return {
        "irexec": _tried(lambda: list(irexec.compile_model(irexec.convert(model.SerializeToString()))(feeds).values())),
        "ONNX Runtime": _tried(lambda: onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"]).run(None, feeds)),
        "onnx.reference": _tried(lambda: ReferenceEvaluator(model, new_ops=_flattening() if old else None).run(None, feeds)),
    }  # fmt: skip


def _tried(run: Callable[[], Any]) -> Results:
    try:
        return [np.asarray(result) for result in run()]
    except Exception as error:
        # The runtimes raise classes of their own.
        return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"


def same(left: Results, right: Results) -> bool:
    if isinstance(left, str) or isinstance(right, str) or len(left) != len(right):
        return False
    return all(_same_array(a, b) for a, b in zip(left, right, strict=True))


def _same_array(left: np.ndarray, right: np.ndarray) -> bool:
    if left.dtype.kind in "OU" or left.shape != right.shape or left.dtype != right.dtype:
        return left.shape == right.shape and left.tolist() == right.tolist()
    loose = 5e-3 if left.dtype == np.float16 else 1e-4
    return bool(np.allclose(left.astype(np.float64), right.astype(np.float64), rtol=loose, atol=loose, equal_nan=True))


def judge(schema: Schema, seed: int) -> tuple[str, str]:
    """The verdict on one case, and what to print of it."""
    identity = f"{schema.domain or 'ai.onnx'}.{schema.name}-{schema.since_version}"
    draw = Draw(schema, np.random.default_rng([zlib.crc32(identity.encode()), seed]))
    try:
        model = draw.model()
    except (NotImplementedError, KeyError, ValueError, TypeError) as error:
        return "not made", f"{identity}: {error}"
    found = answers(model, {name: x for name, x in draw.feeds.items() if name not in draw.constants})
    ours, runtime, reference = found.values()
    text = f"{identity} --seed {seed}: {onnx.printer.to_text(model.graph.node[0]).strip()}\n  " + "\n  ".join(
        f"{name}: {_shown(result)}" for name, result in {"in": [*draw.feeds.values()], **found}.items()
    )
    if isinstance(runtime, str) and isinstance(reference, str):
        return ("runs alone" if not isinstance(ours, str) else "nobody runs it"), text
    if same(ours, runtime):
        return ("agrees" if same(ours, reference) or isinstance(reference, str) else "agrees with ONNX Runtime"), text
    if same(ours, reference) and isinstance(runtime, str):
        return "agrees", text
    if isinstance(ours, str) and isinstance(runtime, str) and "NOT_IMPLEMENTED" not in runtime:
        return "refused by ONNX Runtime too", text
    if explained(draw, model.graph.node[0], runtime) is not None:
        return "explained", text
    return ("refused" if isinstance(ours, str) else "DIFFERS"), text


def _shown(results: Results) -> str:
    if isinstance(results, str):
        return results
    return "; ".join(
        f"{x.dtype}{list(x.shape)} {np.array2string(x.ravel()[:12], precision=4, separator=',')}" for x in results
    )


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=5)
    parser.add_argument("--only", default="")
    parser.add_argument("--time", type=float, default=1e9)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    counts: Counter[str] = Counter()
    end = time.monotonic() + options.time
    for seed in range(options.seed, options.seed + options.count):
        for schema in schemas():
            if options.only and options.only not in (schema.name, f"{schema.name}-{schema.since_version}"):
                continue
            if time.monotonic() > end:
                break
            verdict, text = judge(schema, seed)
            counts[verdict] += 1
            if verdict in ("DIFFERS", "refused") or options.only:
                print(f"{verdict} {text}", flush=True)
    print(", ".join(f"{count} {verdict}" for verdict, count in counts.most_common()))
    return 1 if counts["DIFFERS"] or counts["refused"] else 0


if __name__ == "__main__":
    sys.exit(main())
