"""Rounding to the element types that NumPy lacks; results stay in the carrier. The codec of each type says how."""

from __future__ import annotations

import numpy as np

from irexec.dtypes.elements import Element


def round_to(element: Element, array: np.ndarray) -> np.ndarray:
    """The values of ``array`` rounded to ``element``, in its carrier.

    Args:
        element: the type; one that NumPy has itself leaves the array as it is.
        array: values of the carrier, any shape.
    """
    # Arithmetic on an array without axes gives a NumPy scalar.
    return np.asarray(element.codec.round(np.asarray(array)))
