"""Faults of the kernels of convolutions and pooling."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

_CONVOLUTION = "irexec/backend/convolution"
_TESTS = "tests/backend/test_convolution.py"
_DEPTHWISE = "tests/backend/test_convolution.py"
_POOLING = "tests/backend/test_native_windows.py"
_TRANSPOSED = "tests/backend/test_transposed_convolution.py"

CONVOLUTIONS = (
    Mutation(
        "Winograd with tiles of 6 where the error is too large",
        f"{_CONVOLUTION}/winograd.py",
        "(tile < 6 or g.inputs <= _EXACT_ENOUGH)",
        "True",
        (_TESTS,),
    ),
    Mutation(
        "Winograd leaves the rows of an incomplete tile unwritten",
        f"{_CONVOLUTION}/winograd.py",
        "        if rest:\n",
        "        if rest > 1:\n",
        (_TESTS,),
    ),
    Mutation(
        "Winograd multiplies later points by the weights of the first ones",
        f"{_CONVOLUTION}/winograd.py",
        "packed.array[points], result",
        "packed.array[: len(left)], result",
        (_TESTS,),
    ),
    Mutation(
        "the outputs of a thread are written over each other",
        f"{_CONVOLUTION}/filter_weights.py",
        "return slice(part.start - whole.start, part.stop - whole.start)",
        "return slice(0, part.stop - part.start)",
        (_TESTS,),
    ),
    Mutation(
        "Winograd pads the left as it should the top",
        f"{_CONVOLUTION}/winograd.py",
        "top, left = g.windows.pads_begin",
        "left, top = g.windows.pads_begin",
        (_TESTS,),
    ),
    Mutation(
        "a product on pixels where windows move by 2",
        f"{_CONVOLUTION}/geometry.py",
        "return self.points == 1 and w.counts == self.sizes and not any(w.pads_begin)",
        "return self.points == 1 and set(w.strides) == {1} and not any(w.pads_begin)",
        ("tests/reference/test_windows.py",),
    ),
    Mutation(
        "the last block of rows or channels is one short",
        f"{_CONVOLUTION}/geometry.py",
        "edges = [count * i // parts for i in range(parts + 1)]",
        "edges = [count // parts * i for i in range(parts + 1)]",
        (_TESTS,),
    ),
    Mutation(
        "blocks of the second and later rows are written to the first",
        f"{_CONVOLUTION}/geometry.py",
        "        first = first * count + part.start\n",
        "        first = first + part.start\n",
        (_TESTS,),
    ),
    Mutation(
        "the padding of columns is not zero",
        f"{_CONVOLUTION}/geometry.py",
        "        for index in self.beyond:\n            scratch.do(buffer[index].fill, 0)\n",
        "",
        (_TESTS,),
        graphs=100,
    ),
    Mutation(
        "windows of an even stride begin at an odd pixel",
        f"{_CONVOLUTION}/geometry.py",
        "first = inner.start + (remainder - inner.start) % stride",
        "first = inner.start + remainder % stride",
        (_TESTS,),
        graphs=100,
    ),
    Mutation(
        "columns ignore the dilation of all axes but the last",
        f"{_CONVOLUTION}/columns.py",
        "points = (row * dilation for row, dilation in zip(rows, w.dilations[:-1], strict=True))",
        "points = (row for row, dilation in zip(rows, w.dilations[:-1], strict=True))",
        (_TESTS,),
    ),
    Mutation(
        "output channels with some equal weights are computed once",
        f"{_CONVOLUTION}/filter_weights.py",
        "first = [seen.setdefault(row.tobytes(), i) for i, row in enumerate(rows)]",
        "first = [seen.setdefault(row.tobytes(), i) for i, row in enumerate(sample)]",
        (_TESTS,),
    ),
    Mutation(
        "packed weights of one form are taken for those of another shape",
        f"{_CONVOLUTION}/filter_weights.py",
        "packing, shape, dtype)",
        "packing, dtype)",
        (_TESTS,),
    ),
    Mutation(
        "the chain of a convolution reads the operand of the first image",
        f"{_CONVOLUTION}/output.py",
        "matrix = operand[image if operand.shape[0] > 1 else 0]",
        "matrix = operand[0]",
        (_TESTS,),
        graphs=200,
    ),
    Mutation(
        "grouped convolution takes the weights of the first group",
        f"{_CONVOLUTION}/geometry.py",
        "multiply_rows(scratch, rows, weights, values.reshape(pixels, groups, -1).swapaxes(0, 1))",
        "multiply_rows(scratch, rows, np.broadcast_to(weights[:1], weights.shape), values.reshape(pixels, groups, -1).swapaxes(0, 1))",
        (_TESTS,),
        graphs=100,
    ),
    Mutation(
        "depthwise sums carry over from the neighbouring row",
        "irexec/backend/convolution/depthwise.py",
        "        scratch.do(rows[..., :shift].fill, 0)\n",
        "",
        (_DEPTHWISE,),
    ),
    Mutation(
        "depthwise windows leave the end of the padding unwritten",
        f"{_CONVOLUTION}/windows.py",
        "for beyond in (slice(0, low), slice(high, length)):",
        "for beyond in (slice(0, low),):",
        (_DEPTHWISE,),
        graphs=100,
    ),
    Mutation(
        "depthwise windows of a later block begin at the first row",
        f"{_CONVOLUTION}/windows.py",
        "starts = [rows.start * self._windows.strides[0], *(0 for _ in self._sizes[1:])]",
        "starts = [0 for _ in self._sizes]",
        (_DEPTHWISE,),
    ),
    Mutation(
        "a mean over a padded window divides by all of its points",
        "irexec/backend/native/pooling.py",
        'if not task.attributes["attributes"].exclude_pad and any(map(any, windows.pads)):',
        "if any(map(any, windows.pads)):",
        (_POOLING,),
        graphs=200,
    ),
    Mutation(
        "the maximum of a padded window is at least 0",
        "irexec/backend/native/pooling.py",
        "np.full(self.channels, 0 if factors is not None else lowest(np.dtype(np.float32)), np.float32)",
        "np.zeros(self.channels, np.float32)",
        (_POOLING,),
        graphs=100,
    ),
    Mutation(
        "a transposed convolution adds a tap of the next phase",
        "irexec/backend/transposed.py",
        "if (remainder + begin - tap * dilation) % stride == 0",
        "if (remainder - begin - tap * dilation) % stride == 0",
        (_TRANSPOSED,),
        graphs=200,
    ),
    Mutation(
        "phases of a transposed convolution without taps are not zero",
        "irexec/backend/transposed.py",
        "            scratch.do(target.fill, 0)\n",
        "",
        (_TRANSPOSED,),
        graphs=200,
    ),
)
