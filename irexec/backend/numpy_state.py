"""The settings of NumPy for a thread during a run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

# Elements. NumPy copies every operand of a ufunc that is not contiguous as a whole into buffers of this size, unless
# its rows are more than half as long. With the default of 8192, adding rows of 450 elements takes more than twice as
# long as with 512; conversions of types, which need the buffers, take as long with either.
_BUFFER = 512


def set_for_thread() -> None:
    """NumPy's state for threads of plans: no warnings about infinities and NaN, which are specified; short buffers."""
    np.seterr(all="ignore")
    np.setbufsize(_BUFFER)


@contextmanager
def set_for_run() -> Iterator[None]:
    """The same for the calling thread, until the run is over."""
    with np.errstate(all="ignore"):
        size = np.setbufsize(_BUFFER)
        try:
            yield
        finally:
            np.setbufsize(size)
