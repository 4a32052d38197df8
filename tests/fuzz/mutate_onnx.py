"""ONNX models with fields of their messages changed, or with nodes, attributes, tensors and types that others have."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import onnx
from google.protobuf.descriptor import FieldDescriptor as Field
from onnx import helper, numpy_helper

from tests.fuzz import odd, onnx_corpus

_TYPES = [*range(27), 99, -1]
_SHAPES: list[list[int | str | None]] = [
    [], [0], [1], [3], [-1], ["n"], [None], [2, 3], [1, 1, 2, 2], [2**62], [2**62, 2**62], [5] * 7, ["n", "n"],
    [0, 2**40],
]  # fmt: skip
_INTEGER = {Field.TYPE_INT32, Field.TYPE_INT64, Field.TYPE_UINT64, Field.TYPE_UINT32, Field.TYPE_ENUM}


def mutate(model: onnx.ModelProto, rng: random.Random) -> onnx.ModelProto:
    """The model after one to four changes."""
    for _ in range(rng.choice([1, 1, 1, 2, 2, 3, 4])):
        changes, weights = zip(*CHANGES, strict=True)
        try:
            rng.choices(changes, weights)[0](model, rng)
        except (ValueError, TypeError, IndexError):
            # The value does not fit the field, or the model has nothing of the kind: it stays as it is.
            continue
    return model


def is_repeated(field: Any) -> bool:
    """Whether a field of protobuf holds a list; protobuf 7 says so under another name than protobuf 4."""
    found = getattr(field, "is_repeated", None)
    return bool(found) if found is not None else field.label == Field.LABEL_REPEATED


def messages(message: Any) -> Iterator[Any]:
    """The message and every message in it."""
    yield message
    for field, value in message.ListFields():
        if field.type == Field.TYPE_MESSAGE:
            for one in value if is_repeated(field) else (value,):
                yield from messages(one)


def _of(model: onnx.ModelProto, name: str) -> list[Any]:
    return [message for message in messages(model) if message.DESCRIPTOR.name == name]


def _field(model: onnx.ModelProto, rng: random.Random) -> None:
    """Any field of any message: cleared, set, cut or repeated."""
    message = rng.choice([one for one in messages(model) if one.ListFields()])
    field, value = rng.choice(message.ListFields())
    if is_repeated(field):
        _repeated(message, field, rng)
    elif rng.random() < 0.3:
        message.ClearField(field.name)
    elif field.type != Field.TYPE_MESSAGE:
        setattr(message, field.name, _scalar(field, value, rng))


def _repeated(message: Any, field: Any, rng: random.Random) -> None:
    values, choice = getattr(message, field.name), rng.random()
    i = rng.randrange(len(values))
    if choice < 0.3:
        del values[i]
    elif choice < 0.5:
        values.append(values[i])
    elif choice < 0.6 and len(values) > 1:
        # A permutation, which works for scalars and for messages.
        kept = list(values)
        rng.shuffle(kept)
        copies = [
            type(one).FromString(one.SerializeToString()) if field.type == Field.TYPE_MESSAGE else one for one in kept
        ]
        message.ClearField(field.name)
        getattr(message, field.name).extend(copies)
    elif field.type != Field.TYPE_MESSAGE:
        values[i] = _scalar(field, values[i], rng)


def _scalar(field: Any, value: Any, rng: random.Random) -> Any:
    if field.type in _INTEGER:
        return rng.choice([value + 1, -value, *odd.INTEGERS, *_TYPES])
    if field.type in (Field.TYPE_FLOAT, Field.TYPE_DOUBLE):
        return rng.choice(odd.FLOATS)
    if field.type == Field.TYPE_STRING:
        return rng.choice([*odd.TEXTS, value + "x", value[:-1], "a\0b", "x" * 5000])
    if field.type == Field.TYPE_BYTES:
        return rng.choice(
            [
                b"", value[:-1], value + b"\x00", b"\xff" * len(value), b"\xff\xfe", b"linear", b"SAME_UPPER",
                rng.randbytes(len(value)),
            ]
        )  # fmt: skip
    return not value


def _attribute(model: onnx.ModelProto, rng: random.Random) -> None:
    """Another value, often of another type, for an attribute; or one of another node."""
    nodes = _of(model, "NodeProto")
    node = rng.choice(nodes)
    if rng.random() < 0.25:
        other = rng.choice(_of(onnx_corpus.model(rng), "NodeProto"))
        if other.attribute:
            node.attribute.append(rng.choice(other.attribute))
        return
    if node.attribute:
        i = rng.randrange(len(node.attribute))
        value = rng.choice([
            rng.choice(odd.INTEGERS[:24]), rng.choice(odd.FLOATS), rng.choice(odd.TEXTS), b"\xff\xfe", [], [rng.randint(-3, 3) for _ in range(rng.randint(1, 6))],
            [2**62], [0.5, float("nan")], ["a", ""], helper.make_tensor("t", 1, [2], [1.0, 2.0]), model.graph,
        ])  # fmt: skip
        made = (
            helper.make_attribute(node.attribute[i].name, value)
            if value != []
            else onnx.AttributeProto(name=node.attribute[i].name, type=rng.choice([6, 7, 8]))
        )
        node.attribute[i].CopyFrom(made)


def _list(model: onnx.ModelProto, rng: random.Random) -> None:
    """A list in an attribute with other values of its type, or with another number of them; a number as one that is out of range."""
    found = [attribute for node in _of(model, "NodeProto") for attribute in node.attribute]
    attribute = rng.choice(found)
    for name in ("ints", "floats", "strings"):
        values = list(getattr(attribute, name))
        if values:
            same = {
                "ints": [0, -1, 1, 3, 2**40, 2**63 - 1],
                "floats": [0.0, float("nan"), 1e38],
                "strings": [b"", b"x", b"\xff"],
            }[name]
            made = rng.choice(
                [
                    [],
                    values[:-1],
                    [*values, values[0]],
                    values * 2,
                    values[::-1],
                    *([one] * len(values) for one in same),
                ]
            )
            attribute.ClearField(name)
            getattr(attribute, name).extend(made)
            return
    if attribute.type == onnx.AttributeProto.INT:
        attribute.i = rng.choice([0, -1, 1, 2, 7, 2**31, -(2**63), 2**63 - 1])


def _node(model: onnx.ModelProto, rng: random.Random) -> None:
    """Another type or domain of a node, a copy of it, or a node of another model."""
    nodes = model.graph.node
    if not nodes:
        return
    node, other = rng.choice(nodes), rng.choice(_of(onnx_corpus.model(rng), "NodeProto"))
    choice = rng.random()
    if choice < 0.4:
        node.op_type, node.domain = other.op_type, other.domain
    elif choice < 0.6:
        copy = nodes.add()
        copy.CopyFrom(other)
        values = [name for one in nodes for name in (*one.input, *one.output)] or ["x"]
        for i in range(len(copy.input)):
            copy.input[i] = rng.choice(values)
    elif choice < 0.8:
        nodes.add().CopyFrom(node)
    else:
        node.domain = rng.choice(
            ["", "ai.onnx", "ai.onnx.ml", "com.microsoft", "local", "nosuch", "com.ms.internal.nhwc"]
        )


def _value(model: onnx.ModelProto, rng: random.Random) -> None:
    """An input or output of a node under another name, left out, added or repeated."""
    nodes = _of(model, "NodeProto")
    node = rng.choice(nodes)
    names = [name for one in nodes for name in (*one.input, *one.output)] + ["", "nosuch"]
    list_of = node.input if rng.random() < 0.7 else node.output
    if list_of and rng.random() < 0.6:
        list_of[rng.randrange(len(list_of))] = rng.choice(names)
    elif list_of and rng.random() < 0.5:
        del list_of[-1]
    else:
        list_of.append(rng.choice(names))


def _type(model: onnx.ModelProto, rng: random.Random) -> None:
    """Another element type or shape of an input of the model."""
    if not model.graph.input:
        return
    info = rng.choice(model.graph.input)
    kind = info.type.tensor_type.elem_type if rng.random() < 0.6 else rng.choice(_TYPES)
    shape = rng.choice([*_SHAPES, None])
    info.type.CopyFrom(onnx.TypeProto())
    info.type.tensor_type.elem_type = kind
    if shape is not None:
        info.type.tensor_type.shape.SetInParent()
        for size in shape:
            dim = info.type.tensor_type.shape.dim.add()
            if isinstance(size, int):
                dim.dim_value = size
            elif size:
                dim.dim_param = size


def _sizes(model: onnx.ModelProto, rng: random.Random) -> None:
    """Sizes of inputs and integers of attributes, several at once, that are 0, 1 or near 2^63."""
    for info in model.graph.input:
        for dim in info.type.tensor_type.shape.dim:
            if rng.random() < 0.4:
                dim.dim_value = rng.choice(odd.SIZES)
    for attribute in (attribute for node in _of(model, "NodeProto") for attribute in node.attribute):
        if rng.random() < 0.2 and attribute.type == onnx.AttributeProto.INT:
            attribute.i = rng.choice(odd.SIZES)
        for i in range(len(attribute.ints)):
            if rng.random() < 0.2:
                attribute.ints[i] = rng.choice(odd.SIZES)


def _fixed(model: onnx.ModelProto, rng: random.Random) -> None:
    """An input becomes an initializer, of likely or odd values."""
    inputs = [info for info in model.graph.input if info.type.tensor_type.elem_type in (1, 6, 7, 9, 11)]
    if not inputs:
        return
    info = rng.choice(inputs)
    kind = {1: np.float32, 6: np.int32, 7: np.int64, 9: np.bool_, 11: np.float64}[info.type.tensor_type.elem_type]
    sizes = (
        [dim.dim_value or 1 for dim in info.type.tensor_type.shape.dim]
        if rng.random() < 0.7
        else list(rng.choice(odd.SHAPES))
    )
    if any(not 0 <= size < 50 for size in sizes):
        return
    likely = [
        rng.choice([0, 1, 2, 3])
        if rng.random() < 0.7
        else rng.choice(odd.FLOATS if kind in (np.float32, np.float64) else odd.INTEGERS[:24])
        for _ in range(int(np.prod(sizes)))
    ]
    with np.errstate(all="ignore"):
        array = np.array([float(x) for x in likely], np.float64).astype(kind).reshape(sizes)
    model.graph.initializer.append(numpy_helper.from_array(array, info.name))


def _tensor(model: onnx.ModelProto, rng: random.Random) -> None:
    """Another type, other sizes or bytes of a tensor."""
    tensors = _of(model, "TensorProto")
    if not tensors:
        return
    tensor, choice = rng.choice(tensors), rng.random()
    if choice < 0.3:
        tensor.data_type = rng.choice(_TYPES)
    elif choice < 0.7:
        del tensor.dims[:]
        tensor.dims.extend(rng.choice([[], [0], [1], [-1], [-3, -3], [2**62, 2**62], [2**40], [3], [2, 2]]))
    elif choice < 0.85:
        tensor.raw_data = rng.randbytes(rng.choice([0, 1, 4, 8, 16, len(tensor.raw_data)]))
    else:
        tensor.data_location = rng.choice([0, 1])
        entry = tensor.external_data.add()
        entry.key = rng.choice(["location", "offset", "length", "x"])
        entry.value = rng.choice(
            ["w.bin", "../w.bin", "/etc/passwd", "x" * 5000, "", ".", "-1", str(2**63), "4", "a\0b", "folder"]
        )


def _opset(model: onnx.ModelProto, rng: random.Random) -> None:
    choice = rng.random()
    if choice < 0.6 and model.opset_import:
        rng.choice(model.opset_import).version = rng.choice(
            [0, -1, 1, 6, 7, 9, 11, 13, 17, 18, 20, 23, 24, 99, 2**31, 2**40, 2**62]
        )
    elif choice < 0.8:
        model.opset_import.append(
            helper.make_opsetid(rng.choice(["", "ai.onnx.ml", "local", "x"]), rng.choice([1, 5, 13]))
        )
    else:
        model.ir_version = rng.choice([0, 1, 3, 99, -1, 2**62])


def _function(model: onnx.ModelProto, rng: random.Random) -> None:
    """A call of a function of the model, or a function that nodes of the model are."""
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("local", 1)]
    if model.functions and rng.random() < 0.5:
        function = rng.choice(model.functions)
        rng.choice(_of(model, "NodeProto")).op_type = function.name
        rng.choice(model.functions).node.append(
            helper.make_node(function.name, list(function.input), ["again"], domain=function.domain)
        )
    elif model.graph.node:
        node = rng.choice(model.graph.node)
        body = [onnx.NodeProto.FromString(node.SerializeToString())]
        model.functions.append(
            helper.make_function(
                node.domain or "local", node.op_type, list(node.input), list(node.output), body, opsets
            )
        )


CHANGES: list[tuple[Callable[[onnx.ModelProto, random.Random], None], int]] = [
    (_field, 8), (_attribute, 8), (_list, 6), (_node, 4), (_value, 5), (_type, 6), (_sizes, 4), (_fixed, 4), (_tensor, 5), (_opset, 2), (_function, 1),
]  # fmt: skip
