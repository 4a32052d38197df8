"""How much a conversion may make of a model: a file of a few bytes can ask for any amount.

Sizes are counted before anything is built. A model that stores its nodes and weights itself is not limited.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from irexec.dtypes.elements import Element
from irexec.errors import OpError

MAX_INLINED_NODES = 250_000
"""The nodes of a model after its functions have been inlined."""

MAX_INLINED_BYTES = (1 << 31) - 1
"""The size of a model after its functions have been inlined, which is a protobuf message."""

MAX_GENERATED_BYTES = 1 << 30
"""The size of a constant that is generated from a description: a sparse tensor, an ensemble of trees, a default
bias."""

MAX_NESTED_GRAPHS = 64
"""How deep subgraphs may be nested. In a file, protobuf allows about 33."""

MAX_TRANSLATIONS = 1_000_000
"""How often nodes are translated: those of bodies several times, those of the body of a SequenceMap once for each
tensor. It is added to ten times the number of nodes of the model."""

MAX_UNROLLED = 10_000
"""The steps of an algorithm, or the tensors of a sequence, each of which becomes layers of its own."""


def check_unrolled(count: int, what: str) -> None:
    """Raise OpError unless so many steps may become layers; ``what`` they are begins the message."""
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
    # NumPy takes an axis of size 0 as 1.
    if math.prod(max(length, 1) for length in shape) * element.carrier.itemsize >= 1 << 63:
        raise OpError(f"{what} of shape {list(shape)} is empty, but with other sizes that are too large for an array")


class Translations:
    """Counts the translations of the nodes of a model, which nested bodies multiply.

    Args:
        nodes: how many nodes the model has.
    """

    def __init__(self, nodes: int) -> None:
        self._allowed = self._left = 10 * nodes + MAX_TRANSLATIONS

    def count(self) -> None:
        """Another node is translated; raises OpError if there were too many."""
        self._left -= 1
        if self._left < 0:
            raise OpError(f"the model has nested subgraphs that take more than {self._allowed} translations of nodes")
