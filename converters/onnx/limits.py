"""Limits of a conversion: a file of a few bytes can describe a model of any size.

Sizes are computed before anything is built. Nodes and weights that the file itself stores are not limited.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from irexec.dtypes.elements import Element
from irexec.errors import OpError

MAX_INLINED_NODES = 250_000
"""Maximum number of nodes after functions have been inlined."""

MAX_INLINED_BYTES = (1 << 31) - 1
"""Maximum size of a model after functions have been inlined: the maximum of a protobuf message."""

MAX_GENERATED_BYTES = 1 << 30
"""Maximum size of a constant that is generated from a description: a sparse tensor, trees, a default bias."""

MAX_NESTED_GRAPHS = 64
"""Maximum depth of nested subgraphs. In a file, protobuf allows about 33."""

MAX_TRANSLATIONS = 1_000_000
"""Maximum number of translations of nodes, in addition to ten per node of the model. Nodes of a body are translated
several times, nodes of a SequenceMap's body once per tensor."""

MAX_UNROLLED = 10_000
"""Maximum number of steps of an algorithm, or of tensors in a sequence, that become layers of their own."""


def check_unrolled(count: int, what: str) -> None:
    """Raise OpError unless this number of steps may become layers; ``what`` begins the message."""
    if not 0 <= count <= MAX_UNROLLED:
        raise OpError(f"{what} would be {count}, expected 0 to {MAX_UNROLLED}")


def check_generated(shape: Sequence[int], element: Element, what: str) -> None:
    """Raise OpError unless a constant of this type and shape may be generated; ``what`` begins the message."""
    size = math.prod(shape) * element.carrier.itemsize
    if any(length < 0 for length in shape):
        raise OpError(f"{what} has the shape {list(shape)}")
    if size > MAX_GENERATED_BYTES:
        raise OpError(
            f"{what} of shape {list(shape)} would take {size} bytes, more than the {MAX_GENERATED_BYTES} allowed"
        )
    # NumPy counts an axis of size 0 as one of size 1.
    if math.prod(max(length, 1) for length in shape) * element.carrier.itemsize >= 1 << 63:
        raise OpError(f"{what} of shape {list(shape)} is empty, but with other sizes that are too large for an array")


class Translations:
    """Counts the translations of the nodes of a model, which nested bodies multiply.

    Args:
        nodes: the number of nodes of the model.
    """

    def __init__(self, nodes: int) -> None:
        self._allowed = self._left = 10 * nodes + MAX_TRANSLATIONS

    def count(self) -> None:
        """Count one more translation; raises OpError if there are too many."""
        self._left -= 1
        if self._left < 0:
            raise OpError(f"the model has nested subgraphs that need more than {self._allowed} translations of nodes")
