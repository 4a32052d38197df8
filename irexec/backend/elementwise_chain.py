"""The kernel of an element-wise chain that stands alone, or follows a kernel without support for chains.

The axes of the tensors are merged by their strides into as few as possible, so that a block is cut from rows that are
as long as possible; blocks are so small that what is between the operations stays in cache.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from irexec.backend.chain import Chain, Shared, has_short_rows, run_block
from irexec.backend.kernel import Candidate, Kernel, KernelContext, KernelOptions, Order
from irexec.backend.scratch import Scratch
from irexec.ir.facts import Fact
from irexec.native.library import library

# Elements of a block: of a chain that goes over its output once at least, of another one at most and at least.
_SINGLE_PASS, _BLOCK, _SMALLEST_BLOCK = 1 << 18, 1 << 17, 1 << 12
# Bytes of all arrays of a block together, which stay in a cache of 1 or 2 MiB; of a chain that makes little use of the
# cache.
_CACHED, _CACHED_IN_PART = 3 << 18, 5 << 18
# Nanoseconds for an element: of an addition in cache, of a byte that comes from memory, of an input that lies in
# another order.
_PASS, _BYTE, _REORDERED = 0.14, 0.03, 1.0
_FEW_PASSES = 2.5
# Nanoseconds: of work that is not split, of the work that a thread takes at once, of a run without any work.
_UNSPLIT, _PIECE, _OVERHEAD = 100_000, 60_000, 3_000

_Index = tuple[int | slice, ...]
_Shape = tuple[int, ...]


@dataclass(frozen=True)
class _Layout:
    """How tensors of certain shapes and strides are cut into blocks; the first one is the output.

    Attributes:
        ranked: for each tensor its shape with as many axes as the output has, None if it has them.
        order: the axes of the output from the outermost to the innermost in memory; None for C order.
        merged: for each tensor the shape with merged axes, each of size 1 or full.
        blocks: for each block the index of each tensor.
    """

    ranked: tuple[_Shape | None, ...]
    order: Order | None
    merged: tuple[_Shape, ...]
    blocks: tuple[tuple[_Index, ...], ...]

    def views(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The arrays with merged axes; an array is copied only where it has no such view."""
        found = []
        for array, ranked, merged in zip(arrays, self.ranked, self.merged, strict=True):
            if ranked is not None:
                array = array.reshape(ranked)
            if self.order is not None:
                array = array.transpose(self.order)
            found.append(array if array.shape == merged else array.reshape(merged))
        return found


@functools.lru_cache(maxsize=512)
def _layout(shapes: tuple[_Shape, ...], strides: tuple[_Shape, ...], elements: int) -> _Layout:
    """The layout for tensors of these shapes and strides, in blocks of about ``elements`` elements."""
    target = shapes[0]
    rank = len(target)
    ranked = tuple((1,) * (rank - len(shape)) + shape for shape in shapes)
    steps = [(0,) * (rank - len(step)) + step for step in strides]
    order = tuple(sorted(range(rank), key=lambda axis: -abs(steps[0][axis])))
    groups: list[list[int]] = []
    for axis in (axis for axis in order if target[axis] != 1):
        if groups and all(_merge(shape, step, groups[-1][-1], axis) for shape, step in zip(ranked, steps, strict=True)):
            groups[-1].append(axis)
        else:
            groups.append([axis])
    merged = tuple(tuple(math.prod(shape[axis] for axis in group) for group in groups) or (1,) for shape in ranked)
    changed = tuple(None if full == shape else full for full, shape in zip(ranked, shapes, strict=True))
    blocks = tuple(tuple(_fitted(index, shape) for shape in merged) for index in _blocks(merged[0], elements))
    return _Layout(changed, None if order == tuple(range(rank)) else order, merged, blocks)


def _merge(shape: _Shape, strides: _Shape, outer: int, inner: int) -> bool:
    """Whether two axes of the tensor can be seen as one, of size 1 or full."""
    if (shape[outer] == 1) != (shape[inner] == 1):
        return False
    return shape[outer] == 1 or strides[outer] == strides[inner] * shape[inner]


def _blocks(shape: _Shape, elements: int) -> Iterator[_Index]:
    """Indexes of blocks of about ``elements`` elements: the innermost axes that fit are whole, the next one is cut."""
    axis, inner = len(shape) - 1, 1
    while axis > 0 and inner * shape[axis] <= elements:
        inner *= shape[axis]
        axis -= 1
    size = shape[axis]
    count = max(1, -(-size * inner // elements))
    rows = -(-size // count)
    for outer in itertools.product(*map(range, shape[:axis])):
        for start in range(0, size, rows):
            yield (*outer, slice(start, min(start + rows, size)))


def _fitted(index: _Index, shape: _Shape) -> _Index:
    """The index for a tensor with some axes of size 1."""
    return tuple(
        i if size != 1 else 0 if isinstance(i, int) else slice(None)
        for i, size in zip(index, shape[: len(index)], strict=True)
    )


def chain_cost(
    chain: Chain, inputs: Sequence[Fact], output: Fact, input_orders: Sequence[Order | None], output_order: Order | None
) -> float:
    """Estimated nanoseconds of a chain; arguments are those of ChainKernel."""
    full = sum(fact.shape == output.shape for fact in inputs)
    others = full - sum(_in_order(inputs, output, input_orders, output_order))
    moved = full * chain.dtype.itemsize + chain.result.itemsize
    return _OVERHEAD + math.prod(output.static_shape) * (chain.passes * _PASS + moved * _BYTE + others * _REORDERED)


def _in_order(
    inputs: Sequence[Fact], output: Fact, input_orders: Sequence[Order | None], output_order: Order | None
) -> list[bool]:
    """Whether each input has the shape and the order of the output."""
    orders = [*input_orders, *[None] * (len(inputs) - len(input_orders))]
    return [fact.shape == output.shape and order == output_order for fact, order in zip(inputs, orders, strict=True)]


def chain_candidates(
    chain: Chain,
    inputs: Sequence[Fact],
    output: Fact,
    input_orders: Sequence[Order | None],
    output_order: Order | None,
    options: KernelOptions,
) -> Iterator[Candidate]:
    """The kernels for a chain that stands alone; arguments are those of ChainKernel."""
    arguments = chain, inputs, output, options.threads, input_orders, output_order
    cost = chain_cost(chain, inputs, output, input_orders, output_order)
    yield Candidate(cost, functools.partial(ChainKernel, *arguments))
    if options.native and library() is not None:
        # Not before: most of it is not needed where NumPy computes everything.
        from irexec.backend.native import elementwise

        native = elementwise.cost(chain, inputs, output)
        axes = None if native is None else elementwise.axes_of(inputs, output, input_orders, output_order)
        if native is not None and axes is not None:
            same = _in_order(inputs, output, input_orders, output_order)
            shared = tuple(i for i, is_same in enumerate(same) if is_same)
            moved = sum(fact.shape == output.shape and not is_same for fact, is_same in zip(inputs, same, strict=True))
            native += _REORDERED * moved * math.prod(output.static_shape)
            late = tuple(i for i, order in enumerate(input_orders) if order is None)
            make = functools.partial(elementwise.NativeElementwise, chain, inputs, output, axes, shared, late)
            yield Candidate(native, make, native=True)


class ChainKernel(Kernel):
    """A chain on tensors of known shapes.

    Args:
        inputs: facts of the chain's inputs.
        output: the fact of its result, to whose shape all inputs broadcast.
        threads: number of threads.
        input_orders, output_order: how the tensors lie in memory, as far as that is known.

    Attributes:
        shared: the inputs whose memory the output may be.
    """

    def __init__(
        self,
        chain: Chain,
        inputs: Sequence[Fact],
        output: Fact,
        threads: int = 1,
        input_orders: Sequence[Order | None] = (),
        output_order: Order | None = None,
    ) -> None:
        size = math.prod(output.static_shape)
        same = _in_order(inputs, output, input_orders, output_order)
        self.shared = tuple(i for i, fact in enumerate(inputs) if same[i] and fact.element is output.element)
        super().__init__(algorithm="chain of element-wise operations", overwrites=self.shared, records=True)
        self.chain = chain
        self._elements = block_elements(chain, size, threads)
        self._pieces = _piece_size(chain, size, self._elements)
        self.workspace = chain.workspace(min(size, self._elements)) + (1 << 16)
        self.splits = self._pieces < -(-size // self._elements)

    def run(self, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray], context: KernelContext) -> None:
        """See Kernel.run; an input may be the very memory of the output if ``overwrites`` names it."""
        out = outputs[0]
        shared = tuple(i for i in self.shared if np.may_share_memory(inputs[i], out))
        own = shared[0] if len(shared) == 1 else shared or -1
        _run(self.chain, out, inputs, own, context, self._elements, self._pieces)


def block_elements(chain: Chain, size: int, threads: int) -> int:
    """Elements of a block of a tensor of ``size`` elements.

    All arrays that the chain works on stay in cache. A chain that goes over its output once needs no cache; since a
    block begins slowly after a large one, with the interpreter's own data gone from the cache, it has only
    as many blocks as threads need.
    """
    if len(chain.instructions) == 1 and chain.instructions[0].temporaries == 0 and chain.passes < _FEW_PASSES:
        return max(_SINGLE_PASS, size if threads == 1 else -(-size // (4 * threads)))
    bytes_each = chain.inputs * chain.dtype.itemsize + chain.result.itemsize + chain.workspace(1 << 10) / (1 << 10)
    cached = _CACHED if chain.passes > _FEW_PASSES + 1.5 else _CACHED_IN_PART
    return int(min(_BLOCK, max(_SMALLEST_BLOCK, cached / bytes_each)))


def _piece_size(chain: Chain, size: int, elements: int) -> int:
    """Number of blocks that a thread takes at once; all blocks if the work is small."""
    cost = chain.passes * _PASS * 1.5
    if size * cost < _UNSPLIT:
        return -(-size // elements) or 1
    return max(1, round(_PIECE / (elements * cost)))


def workspace_of(chain: Chain) -> int:
    """Bytes of scratch that ``run_chain`` needs for a thread."""
    return chain.workspace(block_elements(chain, 0, 1)) + (1 << 16)


def run_chain(
    chain: Chain, out: np.ndarray, array: np.ndarray, operands: Sequence[np.ndarray], context: KernelContext
) -> None:
    """Write the result to ``out``, which is the array itself or has another type, such as levels.

    Args:
        array: the chain's input 0.
        operands: the chain's inputs from 1 on.
    """
    elements = block_elements(chain, out.size, len(context.scratches))
    pieces = _piece_size(chain, out.size, elements)
    _run(chain, out, [array, *operands], 0 if out is array else -1, context, elements, pieces)


def _run(
    chain: Chain,
    out: np.ndarray,
    inputs: Sequence[np.ndarray],
    shared: Shared,
    context: KernelContext,
    elements: int,
    piece: int,
) -> None:
    if not out.size:
        return
    if out.size <= elements and out.flags.c_contiguous and all(array.flags.c_contiguous for array in inputs):
        # NumPy itself sees axes of contiguous arrays as one.
        own = shared if isinstance(shared, tuple) else (shared,)
        given = [out if i in own else array for i, array in enumerate(inputs)]
        context.parallel(1, lambda _, scratch: run_block(chain, scratch, out, given, shared))
        return
    arrays = [out, *inputs]
    layout = _layout(tuple([array.shape for array in arrays]), tuple([array.strides for array in arrays]), elements)
    views = context.views(arrays, layout.views(arrays))
    own = tuple([i + 1 for i in (shared if isinstance(shared, tuple) else (shared,))])
    blocks = layout.blocks

    others = range(1, len(views))
    narrow = has_short_rows(views[0])

    def run_piece(index: int, scratch: Scratch) -> None:
        part = blocks[index * piece : (index + 1) * piece]
        arguments = ((target := views[0][i[0]], [target if k in own else views[k][i[k]] for k in others]) for i in part)
        if narrow:
            for out, given in arguments:
                run_block(chain, scratch, out, given, shared)
        else:
            chain.run_blocks(scratch, arguments, shared)

    context.parallel(-(-len(blocks) // piece), run_piece)
