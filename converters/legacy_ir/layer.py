"""One layer while it is translated: its blobs, declared ports and windows, the operations that it becomes.

From version 3 on they are lists whose first number is that of the outermost axis; version 2 has ``kernel-x`` and
``kernel-y``, of which x is the last axis.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from converters.legacy_ir.registry import NoEquivalentError, WrongAttributeError, parsed
from converters.legacy_ir.syntax import Blob, OldLayer
from irexec.analysis.builder import Builder, Operand
from irexec.analysis.evaluate import as_tuple
from irexec.dtypes.elements import BOOLEAN, F16, F32, I32, I64, Element
from irexec.errors import check
from irexec.io.sources import Weights
from irexec.ir import legacy_codes
from irexec.ir.constants import Constant
from irexec.ir.facts import Fact
from irexec.ir.findings import Finding
from irexec.ir.graph import Node, Value


@dataclass
class Job:
    """State of a conversion, shared by the layers of all graphs of a model.

    Attributes:
        version: of the file.
        weights: the .bin.
        findings: the findings so far.
        has_failed: whether a layer could not be translated.
    """

    version: int
    weights: Weights
    findings: list[Finding] = field(default_factory=list)
    has_failed: bool = False

    def fail(self, finding: Finding) -> None:
        """Add a finding that keeps the model from being translated."""
        self.findings.append(finding)
        self.has_failed = True


def computed(element: Element | None) -> Element | None:
    """The type in which the engines compute a tensor that the file declares with this type: f32 in place of f16."""
    return F32 if element is F16 else element


class Layer:
    """A layer of the old model under translation.

    Args:
        node: the layer.
        builder: the builder of the graph around it.
        job: the conversion.
    """

    def __init__(self, node: Node, builder: Builder, job: Job) -> None:
        self.node, self.builder, self.job = node, builder, job
        self._content: OldLayer = node.payload

    @property
    def name(self) -> str:
        """Its name."""
        return self.node.name

    @property
    def attributes(self) -> dict[str, str]:
        """Its attributes as text, for those that a signature cannot describe."""
        return self.node.attributes

    @property
    def body(self) -> Any:
        """The body of a TensorIterator; None for any other layer."""
        return self._content.body

    @property
    def output_count(self) -> int:
        """Number of declared output ports."""
        return len(self.node.outputs)

    def size(self, index: int = 0) -> tuple[int, ...]:
        """The declared sizes of an output port; raises OpError if the port does not exist."""
        check(index < len(self.node.outputs), f"the layer has no output port {index}")
        fact = self.node.outputs[index].fact
        check(fact is not None and fact.is_static, f"output port {index} declares no sizes")
        assert fact is not None
        return fact.static_shape

    def element(self, index: int = 0) -> Element | None:
        """The type in which an output port is computed; None if it is not declared."""
        fact = self.node.outputs[index].fact if index < len(self.node.outputs) else None
        return None if fact is None else computed(fact.element)

    def shape(self, value: Value) -> tuple[int, ...]:
        """The sizes of a value, which its port declares if they depend on constants that cannot be read."""
        fact = self.builder.fact(value)
        if not fact.is_static and value.fact is not None:
            fact = value.fact
        check(fact.is_static, f"the sizes of {value.label!r} are not known")
        return fact.static_shape

    def rank(self, value: Value) -> int:
        """The number of axes of a value."""
        return len(self.shape(value))

    def kind(self, value: Value) -> Element:
        """The element type of a value."""
        element = self.builder.fact(value).element
        assert element is not None
        return element

    def emit(self, type: str, *inputs: Operand | None, version: int | str | None = None, **attributes: Any) -> Value:
        """Add an operation; its first output. Arguments are those of Builder.emit."""
        return self.outputs(type, *inputs, version=version, **attributes)[0]

    def outputs(
        self, type: str, *inputs: Operand | None, version: int | str | None = None, **attributes: Any
    ) -> tuple[Value, ...]:
        """Add an operation; all of its outputs. Arguments are those of Builder.emit."""
        return as_tuple(self.builder.emit(type, *inputs, version=version, name=f"{self.name}/{type}", **attributes))

    def reshaped(self, value: Value, shape: Sequence[int]) -> Value:
        """The value in other sizes; itself if it has them."""
        if self.builder.fact(value).shape == tuple(shape):
            return value
        return self.emit("Reshape", value, self.constant(list(shape), I64), version=1, special_zero=False)

    def constant(self, array: Any, element: Element | None = None) -> Value:
        """A constant; Python ints are i64 and floats f32."""
        return self.builder.constant(array, element, f"{self.name}/constant")

    def filled(self, number: float, shape: Sequence[int], element: Element) -> Value:
        """One number in sizes that a file declares: they may be too large for a constant."""
        scalar = self.constant(number, element)
        return self.emit("Broadcast", scalar, self.constant(list(shape), I64), version=3, mode="numpy")

    def known(self, value: Value, what: str) -> np.ndarray:
        """The elements of a value that does not depend on inputs; raises NoEquivalentError for any other."""
        known = self.builder.fact(value).known
        if known is None:
            node = value.node
            while node.type == "Convert" and node.inputs[0] is not None:
                node = node.inputs[0].node
            known = None if node.constant is None else self.builder.constant_array(node.outputs[0])
        if known is None:
            raise NoEquivalentError(f"{what} is not a constant")
        return known

    def cast(self, value: Value, element: Element | None) -> Value:
        """The value in another element type; itself if it has it."""
        if element is None or self.kind(value) is element:
            return value
        converted: Value = self.emit("Convert", value, destination_type=element)
        return converted

    def f32(self, value: Value) -> Value:
        """The value as f32."""
        return self.cast(value, F32)

    def i64(self, value: Value) -> Value:
        """The value, such as axes in floats, as i64; a constant stays one."""
        if self.kind(value) in (I32, I64):
            return value
        known = self.builder.fact(value).known
        return self.cast(value, I64) if known is None else self.constant(known.astype(np.int64))

    def boolean(self, value: Value) -> Value:
        """True where the value is not 0."""
        if self.kind(value) is BOOLEAN:
            return value
        truth: Value = self.emit("NotEqual", value, self.constant(0, self.kind(value)), version=1)
        return truth

    def has_blob(self, tag: str) -> bool:
        """Whether the layer has a blob of this tag."""
        return tag in self._content.blobs

    def blob_count(self, tag: str) -> int:
        """Number of elements of a blob; raises OpError if there is none."""
        blob = self._blob(tag)
        return blob.size * 8 // self._blob_element(blob).bits

    def blob_size(self, tag: str) -> int:
        """Number of bytes of a blob; raises OpError if there is none."""
        return self._blob(tag).size

    def blob(self, tag: str, shape: Sequence[int] | None = None) -> Value:
        """A blob as a constant in the type in which it is computed.

        Args:
            tag: weights, biases or custom.
            shape: the sizes; one axis unless given.

        Raises:
            OpError: the blob does not exist, or it has another number of elements.
        """
        value = self.raw_blob(tag, shape)
        return self.f32(value) if self.kind(value) is not I64 else value

    def raw_blob(self, tag: str, shape: Sequence[int] | None = None, element: Element | None = None) -> Value:
        """A blob as it is stored; arguments and errors are those of ``blob``, and the element type if it is known."""
        blob = self._blob(tag)
        kind = element or self._blob_element(blob)
        count = blob.size * 8 // kind.bits
        sizes = (count,) if shape is None else tuple(shape)
        check(
            math.prod(sizes) == count,
            f"the {tag} have {count} elements, expected {math.prod(sizes)} ({' x '.join(map(str, sizes))})",
        )
        weights = self.job.weights
        readable = weights.contains(blob.offset, blob.size)
        data = weights.slice(blob.offset, blob.size)
        constant = Constant(kind, sizes, data, blob.size, blob.offset, readable)
        return self.builder.raw_constant(constant, f"{self.name}/{tag}")

    def _blob(self, tag: str) -> Blob:
        blob = self._content.blobs.get(tag)
        check(blob is not None, f"the layer has no {tag}")
        assert blob is not None
        return blob

    def _blob_element(self, blob: Blob) -> Element:
        """The type of a blob: its own, else that of the layer, else that of the first output port."""
        fact: Fact | None = self.node.outputs[0].fact if self.node.outputs else None
        return blob.element or self._content.element or (fact.element if fact is not None else None) or F32

    def note(self, code: str, message: str) -> None:
        """Add a finding that does not keep the layer from being translated."""
        self.job.findings.append(self.node.finding(code, message))


Ints = tuple[int, ...]


@dataclass(frozen=True)
class Windows:
    """The windows of a layer, by spatial axis.

    Attributes:
        kernel, strides, pads_begin, pads_end, dilations: one entry for each spatial axis.
        auto_pad: "explicit", "same_upper", "same_lower" or "valid".
    """

    kernel: Ints
    strides: Ints
    pads_begin: Ints
    pads_end: Ints
    dilations: Ints
    auto_pad: str

    @property
    def extent(self) -> Ints:
        """The sizes of a window, gaps of the dilation included."""
        return tuple((kernel - 1) * dilation + 1 for kernel, dilation in zip(self.kernel, self.dilations, strict=True))

    def total_pads(self, inputs: Ints, outputs: Ints) -> Ints:
        """Sum of the pads at both ends with which windows over ``inputs`` are as many as ``outputs``."""
        rows = zip(inputs, outputs, self.strides, self.extent, strict=True)
        return tuple((there - 1) * stride + extent - here for here, there, stride, extent in rows)

    @property
    def explicit(self) -> dict[str, Ints]:
        """The arguments of an operation without its kernel and ``auto_pad``."""
        return {
            "strides": self.strides, "pads_begin": self.pads_begin, "pads_end": self.pads_end,
            "dilations": self.dilations,
        }  # fmt: skip


def windows(layer: Layer, rank: int) -> Windows:
    """The windows of a layer with ``rank`` spatial axes; raises WrongAttributeError for a missing or wrong list."""
    kernel = _list(layer, "kernel", rank, None)
    begin = _list(layer, "pads_begin", rank, (0,) * rank, ("pad_x", "pad_y"))
    end = _list(layer, "pads_end", rank, begin, ("pad_r", "pad_b"))
    auto_pad = layer.attributes.get("auto_pad", "") or "explicit"
    if "auto_pad" in layer.attributes and auto_pad == "explicit":
        text = (
            "the engines take an auto_pad that is empty or explicit for same_upper, or refuse it; here the pads count"
        )
        layer.note(legacy_codes.AGAINST_DESCRIPTION, text)
    if auto_pad not in ("explicit", "same_upper", "same_lower", "valid"):
        raise WrongAttributeError(f"auto_pad {auto_pad!r} is not same_upper, same_lower or valid")
    if auto_pad == "valid":
        begin = end = (0,) * rank
    strides = _list(layer, "strides", rank, (1,) * rank, ("stride_x", "stride_y"))
    dilations = _list(layer, "dilations", rank, (1,) * rank, ("dilation_x", "dilation_y"))
    return Windows(kernel, strides, begin, end, dilations, auto_pad)


def _list(layer: Layer, name: str, rank: int, default: Ints | None, old: tuple[str, str] | None = None) -> Ints:
    """A list of one number for each axis; ``old`` are the names of version 2, that of x first."""
    texts = layer.attributes
    names = old or (f"{name}_x", f"{name}_y")
    if name in texts:
        found = parsed(name, tuple[int, ...], texts[name])
    elif rank == 2 and (names[0] in texts or names[1] in texts):
        before = default or (1, 1)
        # y comes first in a list.
        found = tuple(
            parsed(key, int, texts[key]) if key in texts else number
            for key, number in zip(reversed(names), before, strict=True)
        )
    elif default is None:
        raise WrongAttributeError(f"the attribute {name} is missing")
    else:
        return default
    if len(found) != rank:
        raise WrongAttributeError(f"{name} has {len(found)} numbers, the input {rank} spatial axes")
    return found
