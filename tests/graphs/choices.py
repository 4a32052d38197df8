"""Plans that a model of this size would not have: kernels chosen at random among those that may compute a task, and short blocks.

Which kernel is the cheapest, and how long its blocks are, must not change what is computed. The graphs are small, so that without this
most of them would be computed by few kernels and in a single block.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from unittest import mock

import numpy as np

from irexec.backend import registry
from irexec.backend.kernel import Candidate, Task

# Elements, bytes, rows or operations of a block, by module; in the last one, elements of constants that stay compressed.
_BLOCKS: Mapping[str, tuple[str, ...]] = {
    "irexec.backend.attention": ("_SCORES", "_LONGEST", "_WORTH_A_BLOCK"),
    "irexec.backend.chain": ("_NARROW", "_WIDENED"),
    "irexec.backend.compressed": ("_BLOCK",),
    "irexec.backend.compressed_kernels": ("_BLOCK", "_FEW_AT_ONCE", "_MANY_AT_ONCE", "_FEW_TOKENS", "_SMALLEST_GROUP"),
    "irexec.backend.convolution.columns": ("_COLUMNS", "_LIMIT", "_WORTH", "_BLOCK", "_PIXELS", "_CHANNELS", "_PIXELS_WORTH"),
    "irexec.backend.convolution.output": ("_CHAINED",),
    "irexec.backend.convolution.windows": ("_CACHED", "_WORTH"),
    "irexec.backend.convolution.winograd": ("_BLOCK", "_MANY_BLOCK"),
    "irexec.backend.deformable": ("_GATHERED",),
    "irexec.backend.convolution.depthwise": ("_CACHED", "_WORTH"),
    "irexec.backend.elementwise_chain": ("_SINGLE_PASS", "_BLOCK", "_SMALLEST_BLOCK", "_CACHED", "_UNSPLIT", "_PIECE"),
    "irexec.backend.linear": ("_CHAINED", "_TRANSPOSED", "_DIRECT_LIMIT", "_WORTH_A_BLOCK"),
    "irexec.backend.matmul": ("_CACHED", "_WORTH_A_BLOCK", "_MANY", "_MINIMUM_ROWS"),
    "irexec.backend.products": ("_SMALL", "_HEIGHT", "UNPACKED_LIMIT"),
    "irexec.backend.reduction": ("_CACHED", "_LONG_SUM"),
    "irexec.backend.rows": ("_CACHED",),
    "irexec.backend.transposed": ("_COLUMNS",),
    "irexec.compile.passes.recognise_compressed_weights": ("SMALLEST",),
}  # fmt: skip
_MINIMA = {("irexec.backend.products", "_SMALL"): 160 * 48 * 16, ("irexec.backend.reduction", "_LONG_SUM"): 8}
"""The limits below which a block would be empty, or a sum of parts as long as the sum itself."""


@contextmanager
def any_kernels(seed: int) -> Iterator[None]:
    """Plans that are made meanwhile have any of the kernels that may compute a task, in any of the layouts."""
    rng = np.random.default_rng([seed, 1])

    def shuffled(function: Callable[[Task], Iterable[Candidate]]) -> Callable[[Task], Iterable[Candidate]]:
        def offered(task: Task) -> Iterator[Candidate]:
            for candidate in function(task):
                candidate.cost = float(10 ** rng.uniform(0, 9))
                yield candidate

        return offered

    registry.loader.load()
    found = {key: [*map(shuffled, functions)] for key, functions in registry._CANDIDATES.items()}
    with mock.patch.dict(registry._CANDIDATES, found):
        yield


@contextmanager
def short_blocks(seed: int) -> Iterator[None]:
    """Plans that are made and run meanwhile work on short blocks, of random lengths."""
    rng = np.random.default_rng([seed, 2])
    with ExitStack() as stack:
        for name, limits in _BLOCKS.items():
            module = importlib.import_module(name)
            for limit in limits:
                size = int(getattr(module, limit) * 10 ** -rng.uniform(0, 5))
                stack.enter_context(mock.patch.object(module, limit, max(_MINIMA.get((name, limit), 1), size)))
        yield
