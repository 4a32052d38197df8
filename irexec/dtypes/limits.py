"""The range of element types."""

from __future__ import annotations

import functools

import numpy as np

from irexec.dtypes.elements import BF16, Element


@functools.cache
def lowest(element: Element) -> float | int:
    """The lowest finite value of a numeric type, such as -448 of f8e4m3; of f8e8m0, which has no sign, the smallest.

    Source: ``std::numeric_limits<T>::lowest()`` of the types of OpenVINO (openvino/core/type/bfloat16.hpp: 0xFF7F).
    """
    if not element.is_float:
        return -(1 << (element.bits - 1)) if element.kind == "signed" else 0
    if element.native:
        return float(np.finfo(element.carrier).min)
    if element is BF16:
        # Seven ones after the binary point, where f32 has 23.
        return -(2 - 2.0**-7) * 2.0**127
    # Every code of at most 8 bits is in these bytes.
    codes = element.codec.unpack(np.arange(256, dtype=np.uint8), 256 * 8 // element.bits)
    return float(codes[np.isfinite(codes)].min())
