"""Models that a release reads and its CPU plugin does not run: shapes and element types.

Source: the plugins themselves of 2021.4.2, 2022.3.2, 2023.3.0 and 2024.6.0, which tests.release_sweep asks.
"""

from __future__ import annotations

from collections.abc import Iterator

from irexec.analysis.portability.layer import KnownLayer
from irexec.analysis.portability.releases import NOT_ASKED, Release
from irexec.ir import codes
from irexec.ir.dims import Size, is_static
from irexec.ir.facts import Fact
from irexec.ir.findings import Finding
from irexec.ir.graph import Node, Value
from irexec.ir.order import upstream

_FIRST, BF16_EVERYWHERE = Release(2020, 1), Release(2023, 0)
"""The first release, and the first with bf16 on any processor."""

_ASKED_LAST = Release(2024, 6)
"""The newest release whose plugin was asked."""

_OPEN_VARIABLES = Release(2023, 3)
"""The first release that runs variables of open shape; before 2024.6 only if the shape of their first value is open."""

DYNAMIC_SHAPES, NO_ELEMENTS = Release(2022, 1), Release(2023, 0)
"""The first releases with plugins for sizes that are not known, and for tensors without elements."""

ELEMENTS_COMPUTED: dict[str, Release] = {
    "bf16": Release(2022, 1), "u4": NOT_ASKED, "i4": NOT_ASKED, "u1": NOT_ASKED, "nf4": NOT_ASKED,
    "u2": NOT_ASKED, "u3": NOT_ASKED, "u6": NOT_ASKED,
}  # fmt: skip
"""The first release whose CPU plugin computes in an element type on any processor; constants may have it before."""

HALVES_IN_ORDER = Release(2023, 2)
"""The first release that takes the lower half of a byte for the first of two elements of u4 or i4, as IR has them."""

BF16_NOT_COMPUTED = frozenset(
    """
    Abs Add AvgPool BatchNormInference BinaryConvolution Clamp Convolution ConvolutionBackpropData Divide Einsum Elu
    Equal Erf Exp FloorMod GRUCell GatherTree Gelu Greater GreaterEqual GroupConvolution GroupConvolutionBackpropData
    GroupNormalization HSigmoid HSwish IsFinite IsInf IsNaN LRN LSTMCell Less LessEqual LogSoftmax MVN MatMul MatrixNms
    MaxPool Maximum Minimum Mish Mod Multiply Negative NotEqual PRelu Power RNNCell Range Relu Round Sigmoid SoftPlus
    SoftSign Softmax Sqrt SquaredDifference Subtract Swish Tanh TopK
    """.split()  # noqa: SIM905 - a list of words
)
"""Operations that the CPU plugins of 2022 do not compute in bf16 on a processor without it."""

ELEMENTS_OF_INPUTS: dict[str, Release] = {
    "f64": Release(2022, 1), "u32": Release(2022, 1), "f8e4m3": NOT_ASKED, "f8e5m2": NOT_ASKED, "f8e8m0": NOT_ASKED,
    "f4e2m1": NOT_ASKED,
}  # fmt: skip
"""The first release that takes inputs of a type."""

UNIQUE_NAMES = NOT_ASKED
"""The first release whose reader takes several layers of one name."""

_REDUCED = ("Max", "Min", "Mean", "Sum", "Prod", "L1", "L2", "LogicalAnd", "LogicalOr")

CONSTANT_INPUTS: tuple[tuple[str, tuple[int, ...], Release, Release], ...] = (
    ("LSTMSequence", (4, 5, 6), _FIRST, Release(2023, 0)), ("GRUSequence", (3, 4, 5), _FIRST, Release(2023, 0)),
    ("RNNSequence", (3, 4, 5), _FIRST, Release(2023, 0)), ("NormalizeL2", (1,), _FIRST, Release(2023, 0)),
    ("LRN", (1,), _FIRST, NOT_ASKED), ("FakeQuantize", (1, 2, 3, 4), _FIRST, Release(2022, 1)),
    ("MVN", (1,), _FIRST, Release(2022, 1)), ("Gather", (2,), Release(2022, 1), NOT_ASKED),
    ("LSTMCell", (3, 4, 5), _FIRST, Release(2023, 0)), ("GRUCell", (2, 3, 4), _FIRST, Release(2023, 0)),
    ("RNNCell", (2, 3, 4), _FIRST, Release(2023, 0)), ("Squeeze", (1,), _FIRST, NOT_ASKED),
    ("Unsqueeze", (1,), _FIRST, NOT_ASKED), ("Unique", (1,), _FIRST, NOT_ASKED),
    ("SpaceToBatch", (1, 2, 3), _FIRST, Release(2023, 0)), ("BatchToSpace", (1, 2, 3), _FIRST, Release(2023, 0)),
    ("ReduceLogicalAnd", (1,), _FIRST, NOT_ASKED), ("ReduceLogicalOr", (1,), _FIRST, NOT_ASKED),
    ("StridedSlice", (1, 2, 3), _FIRST, Release(2022, 1)),
    *((f"Reduce{kind}", (1,), _FIRST, Release(2022, 1)) for kind in _REDUCED),
    *((f"{kind}DFT", (1, 2), _FIRST, NOT_ASKED) for kind in ("", "I", "R", "IR")),
    ("Split", (1,), Release(2022, 1), Release(2023, 0)), ("Broadcast", (1,), _FIRST, Release(2022, 1)),
    ("Col2Im", (1, 2), _FIRST, NOT_ASKED), ("SliceScatter", (2, 3, 4, 5), _FIRST, NOT_ASKED),
    ("ConvolutionBackpropData", (2,), _FIRST, NOT_ASKED), ("GroupConvolutionBackpropData", (2,), _FIRST, NOT_ASKED),
)  # fmt: skip
"""Inputs of operations that must be constants, from a release on until before another."""


SCALARS: tuple[tuple[str, Release], ...] = (
    ("Pad", NOT_ASKED), *((f"Reduce{kind}", NOT_ASKED) for kind in _REDUCED), ("LogSoftmax", NOT_ASKED),
    ("Bucketize", Release(2022, 1)), ("CumSum", Release(2022, 1)),
)  # fmt: skip
"""Operations that do not take scalars as their data, and the first release that was not found to refuse them."""


_KNOWN_SIZES: tuple[tuple[str, tuple[int, ...] | None, Release], ...] = (
    ("DFT IDFT PSROIPooling DeformablePSROIPooling", None, NOT_ASKED), ("RDFT IRDFT", None, Release(2023, 0)),
    ("NonMaxSuppression MulticlassNms MatrixNms NMSRotated", (2,), NOT_ASKED), ("AvgPool", (1,), Release(2023, 0)),
    ("LSTMSequence GRUSequence RNNSequence", (2,), NOT_ASKED),
)  # fmt: skip
"""Operations, the axes of the data (None for all) whose sizes must be known, and the first release without this limit.

A sequence whose features are open is run, and its values are wrong.
"""

_OF_STATES = ("LSTMCell", "GRUCell", "LSTMSequence", "GRUSequence", "RNNSequence")


def plugin_findings(layer: KnownLayer, release: Release) -> Iterator[Finding]:
    """Findings about a layer that the CPU plugin of the release does not run."""
    node = layer.node
    reasons = [
        *_inputs(layer, release),
        *_equation(layer, release),
        *_attributes(node, release),
        *_reduction(layer, release),
        *_variable(layer, release),
        *_open_sizes(layer, release),
    ]
    if node.constant is not None and node.constant.element.name in ("u4", "i4") and release < HALVES_IN_ORDER:
        reasons.append(f"takes the upper half of a byte of {node.constant.element} for the first element")
    if layer.source(0) in layer.facts:
        reasons += [*_data(layer, release), *_oldest(layer, release)]
    for value in node.outputs:
        fact = layer.facts.get(value)
        if fact is not None and node.constant is None:
            reasons += [
                reason for reason in (_shape(node.type, fact, release), _element(layer, fact, release)) if reason
            ]
    for reason in dict.fromkeys(reasons):
        yield node.finding(codes.NOT_RUN_BY_RELEASE, f"OpenVINO {release} {reason}")


def _inputs(layer: KnownLayer, release: Release) -> Iterator[str]:
    node = layer.node
    for type, indices, since, until in CONSTANT_INPUTS:
        if node.type == type and since <= release < until and not _is_decomposed(node):
            if type == "Squeeze" and release >= Release(2023, 3) and _has_one_axis(layer):
                continue
            # The plugin computes elements that follow from known sizes when it compiles.
            given = [value for i in indices if (value := layer.source(i)) is not None and layer.input(i).value is None]
            if not all(map(is_constant, given)):
                which = ", ".join(map(str, indices))
                yield f"runs {type} only if its inputs {which} are constants{_otherwise(type, release)}"


def _otherwise(type: str, release: Release) -> str:
    """The end of the sentence about a layer that the plugin does not refuse."""
    # One and the same model gave right values, wrong values, or ended the process of 2023.3.
    return ", and else reads memory that nothing has written" if "DFT" in type and release >= Release(2023, 0) else ""


def _is_decomposed(node: Node) -> bool:
    """Whether a cell is computed as several layers, because of its activations or its clip."""
    default = {"LSTMCell": "sigmoid,tanh,tanh", "GRUCell": "sigmoid,tanh", "RNNCell": "tanh"}.get(node.type)
    given = node.attributes.get("activations", "").replace(" ", "")
    has_clip = node.attributes.get("clip", "0") not in ("0", "0.0", "inf")
    return default is not None and (given not in ("", default) or has_clip)


def is_constant(value: Value) -> bool:
    """Whether a value depends on constants alone, which are computed when the model is compiled."""
    return not any(
        node.constant is None and (not node.inputs or node.type in ("Parameter", "ReadValue"))
        for node in upstream([value.node])
    )


def _equation(layer: KnownLayer, release: Release) -> Iterator[str]:
    """Einsum is decomposed into products, unless an operand has an ellipsis or a label twice."""
    if layer.node.type != "Einsum" or release >= NOT_ASKED:
        return
    equation = layer.node.attributes.get("equation", "")
    operands = equation.partition("->")[0].split(",")
    if "." in equation or " " in equation or any(len(set(one)) < len(one) for one in operands):
        yield "does not run an Einsum with blanks, an ellipsis, or a label twice in one operand"
        return
    sizes: dict[str, set[Size]] = {}
    for i, operand in enumerate(operands):
        for label, size in zip(operand, layer.sizes(i) or (), strict=False):
            sizes.setdefault(label, set()).add(size)
    if any(len(found) > 1 and 1 in found for found in sizes.values()):
        yield "does not stretch axes of an Einsum"


def _has_one_axis(layer: KnownLayer) -> bool:
    """Whether a layer has one axis, so that the rank of its result is known whatever the axis."""
    return layer.sizes(1) in ((), (1,))


def _reduction(layer: KnownLayer, release: Release) -> Iterator[str]:
    """Without the reduced axes the rank of the result must be known."""
    type, axes = layer.node.type, layer.source(1)
    if not type.startswith("Reduce") or release >= NOT_ASKED or layer.says("keep_dims") in ("true", "1"):
        return
    if release >= Release(2024, 0) and _has_one_axis(layer):
        return
    if axes is not None and not is_constant(axes):
        yield f"runs {type} without keep_dims only if its axes are constants"


def _variable(layer: KnownLayer, release: Release) -> Iterator[str]:
    if layer.node.type != "ReadValue" or release >= _ASKED_LAST or is_static(layer.output(0).shape):
        return
    if release < _OPEN_VARIABLES:
        yield "does not run variables whose shape is not known"
    elif layer.source(0) is None or is_static(layer.input(0).shape):
        yield "runs variables whose shape is not known only if the shape of their first value is not known either"


def _open_sizes(layer: KnownLayer, release: Release) -> Iterator[str]:
    type, sizes = layer.node.type, layer.sizes()
    if sizes is None or not DYNAMIC_SHAPES <= release < NOT_ASKED:
        return
    for types, axes, until in _KNOWN_SIZES:
        if type in types.split() and release < until:
            wanted = sizes if axes is None else [sizes[axis] for axis in axes if axis < len(sizes)]
            if not is_static(tuple(wanted)):
                which = "the sizes of its data are" if axes is None else f"the size of axis {axes[0]} of its data is"
                yield f"runs {type} only if {which} known"
    is_open = not is_static(sizes)
    if type in ("BatchToSpace", "SpaceToBatch") and is_open and len(sizes) < 4 and release < Release(2023, 0):
        yield f"runs {type} of fewer than 4 axes only if the sizes of its data are known"
    if type == "BatchNormInference" and not is_static(layer.sizes(0 if _is_old(layer.node.version) else 1)):
        yield "runs BatchNormInference only if the number of channels is known"
    states = layer.sizes(1)
    if type in _OF_STATES or (type == "RNNCell" and release < Release(2023, 0)):
        batches = [shape[0] for shape in (sizes, states) if shape]
        if len({isinstance(size, int) for size in batches}) > 1:
            yield f"runs {type} only if the batches of its data and state are both known or both open"


def _data(layer: KnownLayer, release: Release) -> Iterator[str]:
    type, is_scalar = layer.node.type, layer.sizes() == ()
    if layer.element() == "bf16" and release < BF16_EVERYWHERE:
        if type in BF16_NOT_COMPUTED:
            yield f"does not compute {type} in bf16 on a CPU"
        if type == "Convert" and layer.says("destination_type") == "boolean":
            yield "does not convert bf16 to boolean"
    if type == "MVN" and is_scalar and len(layer.node.inputs) == 1 and release < NOT_ASKED:
        yield "does not run MVN before version 6 of a scalar"
    if is_scalar and any(type == name and release < until for name, until in SCALARS):
        yield f"does not run {type} of a scalar"
    if type == "Squeeze" and is_scalar and len(layer.node.inputs) > 1 and release < NOT_ASKED:
        yield "does not run Squeeze of a scalar along axes"
    until = {"AvgPool": NOT_ASKED, "ReduceMean": Release(2022, 1)}.get(type)
    if until is not None and release < until and layer.element() in ("i32", "i64"):
        yield f"does not run {type} of {layer.element()}"


def _oldest(layer: KnownLayer, release: Release) -> Iterator[str]:
    """Reasons of plugins before 2022.1, and of plugins before 2025.0."""
    node, name, source = layer.node, layer.element(), layer.source(0)
    if node.type == "BinaryConvolution" and name not in ("f32", "f16", "bf16", "") and release < NOT_ASKED:
        yield f"does not run BinaryConvolution of {name}"
    is_reduced = node.type == "ScatterElementsUpdate" and node.attributes.get("reduction", "none") != "none"
    if is_reduced and name in ("u8", "boolean") and release < _ASKED_LAST:
        yield f"does not run ScatterElementsUpdate of {name} with a reduction"
    if node.type == "ScatterUpdate" and release < NOT_ASKED and layer.sizes(1) == ():
        yield "runs ScatterUpdate of a scalar index only if its axis is a constant"
    is_of_constant = node.type == "Result" and source is not None and source.node.constant is not None
    if is_of_constant and release < NO_ELEMENTS and 0 in (layer.sizes() or ()):
        yield "does not give outputs without elements"
    if release >= DYNAMIC_SHAPES:
        return
    if node.type == "ConvolutionBackpropData" and _is_beyond_its_output(layer):
        yield "does not run a ConvolutionBackpropData whose dilated kernel is larger than its output"
    if node.type == "AvgPool" and _has_a_window_in_the_padding(layer):
        yield "ends the process for an AvgPool with exclude-pad whose last window lies in the padding"
    if node.type == "Convolution" and name == "i8":
        yield "does not run Convolution of i8"
    if node.type == "Interpolate" and name in ("u8", "i16", "u16", "i32", "i64"):
        yield f"does not read Interpolate of {name}"
    if node.type == "DeformableConvolution" and node.attributes.get("group", "1") != "1":
        yield "does not run DeformableConvolution with groups"
    axes = layer.source(1)
    if node.type == "Reverse" and node.attributes.get("mode") == "mask" and axes is not None and not is_constant(axes):
        yield "runs Reverse with a mask only if it is a constant"


def _is_beyond_its_output(layer: KnownLayer) -> bool:
    """Whether the output is cut so that a kernel with dilations does not fit in."""
    if len(layer.node.inputs) < 3:
        return False
    kernel, output = layer.sizes(1), layer.output(0).shape
    dilations = [int(one) for one in layer.node.attributes.get("dilations", "1").split(",")]
    sizes = zip(kernel[2:] if kernel else (), dilations, output[2:] if output else (), strict=False)
    return any(
        isinstance(taps, int) and isinstance(size, int) and dilation > 1 and (taps - 1) * dilation + 1 > size
        for taps, dilation, size in sizes
    )


def _has_a_window_in_the_padding(layer: KnownLayer) -> bool:
    """Whether the last window of a pooling with exclude-pad and explicit pads has no element of the data."""
    if layer.says("exclude-pad") not in ("true", "1"):
        return False
    strides, begins = (
        [int(one) for one in layer.node.attributes.get(name, "").split(",") if one.strip()]
        for name in ("strides", "pads_begin")
    )
    outputs, sizes = layer.output(0).shape or (), layer.sizes() or ()
    windows = zip(outputs[2:], sizes[2:], strides, begins, strict=False)
    return any(
        isinstance(count, int) and isinstance(size, int) and (count - 1) * stride - begin >= size
        for count, size, stride, begin in windows
    )


def _attributes(node: Node, release: Release) -> Iterator[str]:
    if release >= NOT_ASKED:
        return
    given = node.attributes
    forgets = given.get("input_forget", "false") in ("true", "1")
    if node.type == "LSTMCell" and (len(node.inputs) > 6 or forgets):
        yield "does not run an LSTMCell with peepholes or input_forget"
    if node.type == "PriorBox" and given.get("min_max_aspect_ratios_order", "true") in ("false", "0"):
        yield "does not run PriorBox without min_max_aspect_ratios_order"
    if (
        node.type == "DetectionOutput"
        and given.get("decrease_label_id", "false") in ("true", "1")
        and given.get("background_label_id", "0") != "0"
    ):
        yield "does not run DetectionOutput with both decrease_label_id and background_label_id"
    if node.type == "GenerateProposals" and given.get("nms_eta", "1") not in ("1", "1.0"):
        yield "reads GenerateProposals only with an nms_eta of 1"
    sizes = [value for value in node.inputs[1:] if value is not None]
    if node.type == "Interpolate" and "pillow" in given.get("mode", "") and not all(map(is_constant, sizes)):
        yield "runs the modes of Pillow only if sizes and axes are constants"
    if node.type == "NonMaxSuppression" and Release(2022, 1) <= release < Release(2023, 0) and _is_old(node.version):
        yield "does not give the outputs of NonMaxSuppression before version 5"


def _is_old(version: str) -> bool:
    return version in ("opset1", "opset2", "opset3", "opset4")


def _shape(type: str, fact: Fact, release: Release) -> str | None:
    if release < DYNAMIC_SHAPES and not is_static(fact.shape):
        return "does not run sizes that are not known before the model runs"
    if release < NOT_ASKED and fact.shape is None:
        return "does not run tensors of unknown rank"
    is_run = type.startswith("PriorBox") and release >= DYNAMIC_SHAPES
    if release < NO_ELEMENTS and fact.shape is not None and 0 in fact.shape and not is_run:
        return "does not run tensors without elements"
    return None


_MAKE_ELEMENTS = {"bf16": ("OneHot", "Select"), "u1": ("Convert",), "u4": ("Convert",), "i4": ("Convert",)}
"""Operations that plugins run although they compute nothing else in the element type, before the end of a model."""


def _is_made(layer: KnownLayer, release: Release) -> bool:
    """Whether the values come from constants, or from a type that the plugin converts."""
    node, source = layer.node, layer.input(0).element
    if node.type != "Convert":
        given = [one for one in node.inputs[1:] if one is not None]
        return release < DYNAMIC_SHAPES and all(map(is_constant, given[-2 if node.type == "OneHot" else -1 :]))
    if source is None or release >= NOT_ASKED:
        return False
    if release < DYNAMIC_SHAPES:
        return source.kind == "boolean"
    target = layer.says("destination_type")
    is_taken = source.bits <= 8 or (source.is_float and (source.bits <= 32 or target == "i4"))
    return release >= _ASKED_LAST and target in ("u4", "i4") and is_taken


def _element(layer: KnownLayer, fact: Fact, release: Release) -> str | None:
    type = layer.node.type
    name = "" if fact.element is None else fact.element.name
    if name == "bf16" and type == "Convert":
        # Its reader may be the end of the model, which gets f32.
        return None
    if type in _MAKE_ELEMENTS.get(name, ()) and _is_made(layer, release):
        return None
    if name in ELEMENTS_COMPUTED and ELEMENTS_COMPUTED[name] > release:
        return f"does not compute in {name} on a CPU"
    if type == "Parameter" and name in ELEMENTS_OF_INPUTS and ELEMENTS_OF_INPUTS[name] > release:
        return f"does not take inputs of {name}"
    return None
