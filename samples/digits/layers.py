"""The few layers that the two sample networks need, forward and backward, in NumPy."""

from __future__ import annotations

import numpy as np

Array = np.ndarray


def columns(x: Array, k: int, stride: int, pad: int) -> Array:
    """Windows of (N, C, H, W) as (N, C, k, k, h, w)."""
    x = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    view = np.lib.stride_tricks.sliding_window_view(x, (k, k), (2, 3))[:, :, ::stride, ::stride]
    return view.transpose(0, 1, 4, 5, 2, 3)


def fold(cols: Array, shape: tuple[int, ...], stride: int, pad: int) -> Array:
    """The sum of windows (N, C, k, k, h, w) at the places they came from."""
    n, c, k, _, h, w = cols.shape
    out = np.zeros((n, c, shape[2] + 2 * pad, shape[3] + 2 * pad), cols.dtype)
    for i in range(k):
        for j in range(k):
            out[:, :, i : i + stride * h : stride, j : j + stride * w : stride] += cols[:, :, i, j]
    return out[:, :, pad : pad + shape[2], pad : pad + shape[3]]


class Conv:
    """A convolution; weights (O, I, k, k)."""

    def __init__(self, rng: np.random.Generator, inputs: int, outputs: int, k: int, stride: int, pad: int) -> None:
        self.stride, self.pad, self.k = stride, pad, k
        self.w = rng.normal(0, np.sqrt(2 / (inputs * k * k)), (outputs, inputs, k, k)).astype(np.float32)
        self.b = np.zeros(outputs, np.float32)

    def forward(self, x: Array) -> Array:
        self.shape, self.cols = x.shape, columns(x, self.k, self.stride, self.pad)
        return np.einsum("ncijhw,ocij->nohw", self.cols, self.w, optimize=True) + self.b[:, None, None]

    def backward(self, g: Array) -> Array:
        self.gw = np.einsum("ncijhw,nohw->ocij", self.cols, g, optimize=True)
        self.gb = g.sum((0, 2, 3))
        return fold(np.einsum("nohw,ocij->ncijhw", g, self.w, optimize=True), self.shape, self.stride, self.pad)


class GroupedUpConv:
    """A grouped transposed convolution; weights (I, O / groups, k, k) as ONNX has them."""

    def __init__(self, rng: np.random.Generator, inputs: int, outputs: int, groups: int) -> None:
        self.k, self.stride, self.pad, self.groups = 4, 2, 1, groups
        spread = np.sqrt(2 / (inputs // groups * 4))
        self.w = rng.normal(0, spread, (inputs, outputs // groups, self.k, self.k)).astype(np.float32)
        self.b = np.zeros(outputs, np.float32)

    def _grouped(self) -> Array:
        return self.w.reshape(self.groups, -1, *self.w.shape[1:])

    def forward(self, x: Array) -> Array:
        n, c, h, w = x.shape
        self.x = x.reshape(n, self.groups, c // self.groups, h, w)
        cols = np.einsum("ngchw,gcoij->ngoijhw", self.x, self._grouped(), optimize=True)
        cols = cols.reshape(n, -1, self.k, self.k, h, w)
        return fold(cols, (n, cols.shape[1], 2 * h, 2 * w), self.stride, self.pad) + self.b[:, None, None]

    def backward(self, g: Array) -> Array:
        self.gb = g.sum((0, 2, 3))
        cols = columns(g, self.k, self.stride, self.pad)
        n, c = cols.shape[:2]
        cols = cols.reshape(n, self.groups, c // self.groups, *cols.shape[2:])
        self.gw = np.einsum("ngchw,ngoijhw->gcoij", self.x, cols, optimize=True).reshape(self.w.shape)
        back = np.einsum("ngoijhw,gcoij->ngchw", cols, self._grouped(), optimize=True)
        return back.reshape(n, -1, *back.shape[3:])


class Dense:
    """A product with a matrix (I, O)."""

    def __init__(self, rng: np.random.Generator, inputs: int, outputs: int) -> None:
        self.w = rng.normal(0, np.sqrt(1 / inputs), (inputs, outputs)).astype(np.float32)
        self.b = np.zeros(outputs, np.float32)

    def forward(self, x: Array) -> Array:
        self.shape = x.shape
        self.x = x.reshape(len(x), -1)
        return self.x @ self.w + self.b

    def backward(self, g: Array) -> Array:
        self.gw, self.gb = self.x.T @ g, g.sum(0)
        return (g @ self.w.T).reshape(self.shape)


class Relu:
    """Positive elements; 0 for the others."""

    def forward(self, x: Array) -> Array:
        self.on = x > 0
        return x * self.on

    def backward(self, g: Array) -> Array:
        return g * self.on


class MaxPool:
    """The maximum of each 2x2 block."""

    def forward(self, x: Array) -> Array:
        n, c, h, w = x.shape
        blocks = x.reshape(n, c, h // 2, 2, w // 2, 2)
        out = blocks.max((3, 5))
        self.mask = blocks == out[:, :, :, None, :, None]
        return out

    def backward(self, g: Array) -> Array:
        n, c, h, w = g.shape
        return (self.mask * g[:, :, :, None, :, None]).reshape(n, c, 2 * h, 2 * w)


class Adam:
    """Adam over the weights and biases of layers that have them."""

    def __init__(self, layers: list, rate: float) -> None:
        self.layers, self.rate, self.steps = [layer for layer in layers if hasattr(layer, "w")], rate, 0
        self.moments = [{name: [0.0, 0.0] for name in "wb"} for _ in self.layers]

    def step(self) -> None:
        self.steps += 1
        for layer, moments in zip(self.layers, self.moments, strict=True):
            for name in "wb":
                gradient = getattr(layer, f"g{name}")
                first, second = moments[name]
                first, second = 0.9 * first + 0.1 * gradient, 0.999 * second + 0.001 * gradient**2
                moments[name] = [first, second]
                scale = np.sqrt(1 - 0.999**self.steps) / (1 - 0.9**self.steps)
                update = self.rate * scale * first / (np.sqrt(second) + 1e-8)
                setattr(layer, name, (getattr(layer, name) - update).astype(np.float32))
