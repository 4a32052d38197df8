"""C kernels touch no memory outside of their arrays: these lie directly in front of, or behind, a page that cannot be accessed.

A violation ends the process, so rows run in another one.
"""

from __future__ import annotations

import sys

import pytest

from irexec.native.library import library
from tests.support.paths import ROOT
from tests.support.processes import said

_CODE = """
import ctypes, mmap, sys
from unittest import mock

import numpy as np

import irexec
from irexec.backend import registry
from irexec.backend import calls
from irexec.runtime import arenas

PAGE = mmap.PAGESIZE
libc = ctypes.CDLL(None, use_errno=True)
kept, count = [], 0


def guarded(array, at_end):
    # A copy whose last byte is followed, or whose first byte is preceded, by a page that cannot be accessed.
    global count
    pages = -(-array.nbytes // PAGE)
    memory = mmap.mmap(-1, (pages + 2) * PAGE)
    whole = np.frombuffer(memory, np.uint8)
    start = (pages + 1) * PAGE - array.nbytes if at_end else PAGE
    copy = whole[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    for page in (0, pages + 1):
        assert libc.mprotect(ctypes.c_void_p(whole.ctypes.data + page * PAGE), PAGE, 0) == 0
    kept.append(memory)
    count += 1
    return copy


def bound(at_end):
    original = calls.NativeKernel.run

    def run(self, inputs, outputs, context):
        # Arrays in the order of memory in which they lie: transposed copies would not be what the plan has.
        def placed(array):
            if array is None or array.dtype.kind not in "fiub" or not array.nbytes:
                return array
            order = np.argsort([-s for s in array.strides], kind="stable")
            return guarded(np.ascontiguousarray(array.transpose(order)), at_end).transpose(np.argsort(order))

        given, made = [placed(array) for array in inputs], [placed(array) for array in outputs]
        original(self, given, made, context)
        for output, array in zip(outputs, made):
            if output is not None:
                output[...] = array

    return mock.patch.object(calls.NativeKernel, "run", run)


offered = registry._offered


def preferred(function, task):
    # The tasks are so small that NumPy is estimated to be faster.
    found = offered(function, task)
    for candidate in found:
        candidate.cost *= 1 if ".native." in function.__module__ else 1e6
    return found


registry._offered = preferred


def product(rows, depth, columns):
    b = irexec.Builder("m")
    x = b.parameter("f32", (rows, depth), "x")
    y = b.emit("MatMul", x, np.ones((depth, columns), np.float32), name="p")
    b.result(b.emit("Add", y, np.ones((columns,), np.float32), name="a"))
    return b.model()


def batched(rows, depth, columns):
    b = irexec.Builder("m")
    x, y = b.parameter("f32", (3, rows, depth), "x"), b.parameter("f32", (3, depth, columns), "y")
    b.result(b.emit("MatMul", x, y, name="p"))
    return b.model()


def convolution(channels, size, kernel, groups=0, stride=1):
    b = irexec.Builder("m")
    x = b.parameter("f32", (2, channels, size, size), "x")
    shape = (groups, channels // groups, channels // groups, kernel, kernel) if groups else (5, channels, kernel, kernel)
    pad = kernel // 2
    y = b.emit(
        "GroupConvolution" if groups else "Convolution", x, np.ones(shape, np.float32), name="c",
        strides=(stride, stride), pads_begin=(pad, pad), pads_end=(pad, pad), dilations=(1, 1),
    )
    b.result(b.emit("Sigmoid", y, name="s"))
    return b.model()


def chain(*shape):
    b = irexec.Builder("m")
    x, y = b.parameter("f32", shape, "x"), b.parameter("f32", shape[-1:], "y")
    b.result(b.emit("Tanh", b.emit("Multiply", b.emit("Add", x, y), x)))
    return b.model()


def softmax(*shape):
    b = irexec.Builder("m")
    b.result(b.emit("Softmax", b.parameter("f32", shape, "x"), version=8, axis=-1))
    return b.model()


def quantised(channels, size, kernel):
    # The second convolution reads the levels of the first one as they lie.
    b = irexec.Builder("m")
    low, high = np.float32(-2), np.float32(127 / 64)
    x = b.parameter("f32", (2, 4, size, size), "x")
    for shape in ((channels, 4, 1, 1), (40, channels, kernel, kernel)):
        x = b.emit("FakeQuantize", x, low, high, low, high, levels=256)
        integers = b.emit("Convert", b.constant(np.ones(shape, np.int8)), destination_type="f32")
        weights = b.emit("Multiply", integers, np.full((shape[0], 1, 1, 1), 0.01, np.float32))
        x = b.emit("Convolution", x, weights, strides=(1, 1), pads_begin=(0, 0), pads_end=(0, 0), dilations=(1, 1))
    b.result(b.emit("FakeQuantize", x, low, high, low, high, levels=256))
    return b.model()


SIZES = (1, 2, 3, 5, 7, 8, 15, 16, 17, 31, 33, 49, 63)
models = [product(r, d, c) for r in (1, 3, 7, 13) for d in (1, 5, 17) for c in SIZES]
models += [batched(r, 5, c) for r in (1, 7) for c in SIZES]
models += [convolution(c, s, k) for c in (1, 3, 16, 17) for s in (1, 5, 9) for k in (1, 3)]
models += [convolution(c, s, k, c, n) for c in (1, 3, 16, 17, 33) for s in (1, 5, 9) for n in (1, 2) for k in (3, 5)]
models += [chain(3, s) for s in SIZES] + [chain(2, s, 600) for s in (1, 3)] + [softmax(3, s) for s in SIZES]
models += [quantised(c, s, k) for c in (3, 20, 68, 100) for s in (5, 13) for k in (1, 3)]
rng = np.random.default_rng(1)
for at_end in (False, True):
    with bound(at_end), mock.patch.object(arenas, "segments_of", lambda *_: {}):
        for model in models:
            for threads in (1, 2):
                compiled = irexec.compile_model(model, threads=threads)
                compiled([rng.standard_normal(port.shape).astype(np.float32) for port in compiled.inputs])
                kept.clear()
print(count)
"""


@pytest.mark.skipif(library() is None, reason="the C kernels were not built")
@pytest.mark.skipif(sys.platform != "linux", reason="mprotect of Linux")
def test_kernels_stay_within_their_arrays() -> None:
    assert int(said(ROOT, "-c", _CODE)[0]) > 1000
