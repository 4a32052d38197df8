"""Operations that OpenVINO's plugins have and its reader refuses: the CPU plugin imports them, as part of a model that it has
compiled.

With callbacks for encryption that change nothing, the file of a compiled model holds its IR as text, after the places of its
three parts. Source: openvino docs, Model Caching Overview; the layout is that of 2026.4.
"""

from __future__ import annotations

import functools
import io
import struct

import numpy as np
import openvino as ov
from openvino import opset13
from openvino.op import _PagedAttentionExtension

from irexec.testing import Case
from tests.support.one_operation import Text, one_operation

_KEEP = {"CACHE_ENCRYPTION_CALLBACKS": [lambda text: text, lambda text: text]}
_OPTIONS = {"INFERENCE_PRECISION_HINT": "f32", "EXECUTION_MODE_HINT": "ACCURACY", "KV_CACHE_PRECISION": "f32"}
_CONSTANT = {"AUGRUCell": {2, 3, 4}, "AUGRUSequence": {2, 3, 4, 5}}
"""Inputs that the plugin takes as constants only."""
TYPES = {
    "AUGRUCell", "AUGRUSequence", "GatedDeltaNet", "PagedAttentionExtension", "PagedCausalConv1D", "PagedGatedDeltaNet",
    "PagedSelectiveSSM", "RMS", "RoPE", "SelectiveSSM",
}  # fmt: skip
_PLACES = struct.Struct("<6Q")


@functools.cache
def _head() -> tuple[bytes, bytes]:
    """What is in front of the places of the parts, and the first part."""
    x = opset13.parameter([1], ov.Type.f32)
    blob = ov.Core().compile_model(ov.Model([opset13.relu(x)], [x]), "CPU", _KEEP).export_model().getvalue()
    first = blob[blob.index(b"<?xml") : blob.index(b"</cnndata>\n") + len(b"</cnndata>\n")]
    return blob[: blob.index(b"<?xml") - _PLACES.size], first


def imported(text: Text) -> ov.CompiledModel:
    """The compiled model of an IR; raises RuntimeError where the plugin does not import it."""
    head, first = _head()
    parts = (first, bytes(text.blob), f'<?xml version="1.0"?>{text.xml()}'.encode())
    begins = [_PLACES.size + sum(map(len, parts[:i])) for i in range(3)]
    places = _PLACES.pack(*(number for pair in zip(begins, map(len, parts), strict=True) for number in pair))
    return ov.Core().import_model(io.BytesIO(head + places + b"".join(parts)), "CPU", _KEEP | _OPTIONS)


def attention(row: Case) -> ov.CompiledModel:
    """The compiled model of a row of PagedAttentionExtension, whose sizes the plugin reads from notes at the layer."""
    if not all(x.element.native for x in row.inputs):
        raise RuntimeError("the caches would be of a type that NumPy does not have")
    types = {x.array.dtype: ov.Type(x.array.dtype) for x in row.inputs}
    given = [opset13.parameter(list(x.array.shape), types[x.array.dtype]) for x in row.inputs]
    node = _PagedAttentionExtension([one.output(0) for one in given])
    heads, size, value_size = (row.inputs[i].array.shape[axis] for i, axis in ((3, 1), (3, 3), (4, 3)))
    notes = {"num_k_heads": heads, "num_v_heads": heads, "k_head_size": size, "v_head_size": value_size}
    for name, number in notes.items():
        node.get_rt_info()[name] = number
    return ov.Core().compile_model(ov.Model([node.output(i) for i in range(3)], given), "CPU", _OPTIONS)


def inputs_after(row: Case) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """What the CPU plugin gives for a row, and its inputs afterwards: it writes to some of them.

    Raises:
        RuntimeError: the plugin refuses.
    """
    fed = [i for i in range(len(row.inputs)) if i not in _CONSTANT.get(row.type, ())]
    one = one_operation(row, {i: row.inputs[i].array.shape for i in fed})
    compiled = attention(row) if row.type == "PagedAttentionExtension" else imported(one.text)
    tensors = [ov.Tensor(np.array(array, order="C")) for array in one.fed.values()]
    request = compiled.create_infer_request()
    request.infer(tensors)
    outputs = [np.array(request.get_output_tensor(i).data) for i in range(len(compiled.outputs))]
    return outputs, [np.array(tensor.data) for tensor in tensors]
