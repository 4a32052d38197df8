"""Memory: a pair of layers of one ``id``; index 1 reads what index 0 wrote in the call before."""

from __future__ import annotations

from converters.legacy_ir.layer import Layer
from converters.legacy_ir.objections import WrongAttributeError
from converters.legacy_ir.registry import translates
from irexec.dtypes.elements import F32
from irexec.errors import check
from irexec.ir.graph import Value


@translates("Memory")
def memory(layer: Layer, data: Value | None = None, *, id: str, index: int) -> tuple[Value, ...]:
    """A variable, 0 before the first call."""
    if index not in (0, 1):
        raise WrongAttributeError(f"index {index} is neither 0 nor 1")
    if index == 0:
        check(data is not None, "the layer writes, and has no input")
        assert data is not None
        layer.outputs("Assign", layer.f32(data), version=6, variable_id=id)
        return ()
    check(data is None, "the layer reads, and has an input")
    shape = layer.size()
    zeros = layer.filled(0, shape, F32)
    return layer.outputs("ReadValue", zeros, version=6, variable_id=id, variable_type=F32, variable_shape=shape)
