"""Layers that move a window over spatial axes."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.legacy_sweep.network import Network, Port, Shape
from tests.legacy_sweep.registry import chance, generates, pick, shape_of, size, values


def window(net: Network, axes: int, kernel_high: int = 3, dilated: bool = True) -> dict[str, list[int]]:
    """Random kernel, strides, pads and dilations, outermost axis first."""
    kernel = [size(net, 1, kernel_high) for _ in range(axes)]
    dilations = [size(net, 1, 2) if dilated else 1 for _ in range(axes)]
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    return {
        "kernel": kernel,
        "strides": [size(net, 1, 3) for _ in range(axes)],
        "pads_begin": [size(net, 0, r // 2) for r in reach],
        "pads_end": [size(net, 0, r // 2) for r in reach],
        "dilations": dilations,
    }


def written(net: Network, given: dict[str, list[int]], dilated: bool = True) -> dict[str, Any]:
    """The attributes of a window as the version writes them."""
    given = given if dilated else {key: value for key, value in given.items() if key != "dilations"}
    if net.version > 2:
        return dict(given)
    names = {"kernel": "kernel", "strides": "stride", "pads_begin": "pad", "dilations": "dilation"}
    found = {
        f"{names[key]}-{axis}": value[-1 - i]
        for key, value in given.items() if key in names for i, axis in enumerate("xy")
    }  # fmt: skip
    return found | {"pad-r": given["pads_end"][1], "pad-b": given["pads_end"][0]}


def swept(picture: Shape, given: dict[str, list[int]]) -> Shape:
    """The sizes of the output of a convolution."""
    return tuple(
        (n + b + e - ((k - 1) * d + 1)) // s + 1
        for n, k, s, b, e, d in zip(
            picture, given["kernel"], given["strides"], given["pads_begin"], given["pads_end"], given["dilations"],
            strict=True,
        )
    )  # fmt: skip


def same_pads(net: Network, given: dict[str, list[int]], picture: Shape, data: dict[str, Any]) -> Shape | None:
    """Sometimes set auto_pad; the output sizes if it decides them."""
    if net.version < 3:
        return None
    mode = pick(net, None, None, "same_upper", "same_lower", "valid")
    if mode is None:
        return None
    data["auto_pad"] = mode
    if mode == "valid":
        return swept(picture, given | {"pads_begin": [0] * len(picture), "pads_end": [0] * len(picture)})
    return tuple(-(-n // s) for n, s in zip(picture, given["strides"], strict=True))


def _axes(net: Network) -> int:
    return 2 if net.version < 3 or chance(net, 0.75) else 3


def _weights(net: Network, weights: np.ndarray, biases: np.ndarray | None) -> tuple[list[Port], dict[str, Any]]:
    """Weights and biases as blobs, or from version 6 on sometimes as inputs."""
    if net.version >= 6 and chance(net, 0.25):
        return [net.const(array) for array in (weights, biases) if array is not None], {}
    return [], {"weights": weights, "biases": biases}


@generates("Convolution")
def convolution(net: Network) -> None:
    axes, group = _axes(net), int(pick(net, 1, 1, 2, 3))
    per_in, per_out = size(net, 1, 3), size(net, 1, 3)
    picture = shape_of(net, axes, 6, 9)
    given = window(net, axes)
    data = written(net, given) | {"output": group * per_out, "group": group}
    sizes = same_pads(net, given, picture, data) or swept(picture, given)
    batch = size(net, 1, 2)
    x = net.input(values(net, (batch, group * per_in, *picture)))
    weights = values(net, (group * per_out, per_in, *given["kernel"]))
    more, blobs = _weights(net, weights, values(net, (group * per_out,)) if chance(net, 0.8) else None)
    net.layer("Convolution", [x, *more], [(batch, group * per_out, *sizes)], data, blobs, gap=size(net, 0, 2))


@generates("Deconvolution")
def deconvolution(net: Network) -> None:
    axes, group = _axes(net), int(pick(net, 1, 1, 2))
    per_in, per_out = size(net, 1, 3), size(net, 1, 3)
    picture = shape_of(net, axes, 3, 5)
    given = window(net, axes, 4, dilated=False)
    data = written(net, given) | {"output": group * per_out, "group": group}
    mode = pick(net, None, None, "same_upper") if net.version > 2 else None
    if mode:
        # Total padding is kernel - stride: kernels are at least as large.
        given["kernel"] = [max(k, s) for k, s in zip(given["kernel"], given["strides"], strict=True)]
        data["kernel"] = given["kernel"]
        data["auto_pad"] = mode
        sizes: Shape = tuple(n * s for n, s in zip(picture, given["strides"], strict=True))
    else:
        sizes = tuple(
            max((n - 1) * s + k - b - e, 1)
            for n, s, k, b, e in zip(
                picture, given["strides"], given["kernel"], given["pads_begin"], given["pads_end"], strict=True
            )
        )
    batch = size(net, 1, 2)
    x = net.input(values(net, (batch, group * per_in, *picture)))
    weights = values(net, (group * per_in, per_out, *given["kernel"]))
    blobs = {"weights": weights, "biases": values(net, (group * per_out,)) if chance(net) else None}
    net.layer("Deconvolution", [x], [(batch, group * per_out, *sizes)], data, blobs, gap=size(net, 0, 2))


@generates("Pooling")
def pooling(net: Network) -> None:
    axes = _axes(net)
    picture = shape_of(net, axes, 4, 9)
    given = window(net, axes, dilated=False)
    method = pick(net, "max", "avg")
    exclude = chance(net)
    if axes == 3 and method == "avg" and not exclude:
        # Disputed: the engines exclude pads here too.
        given["pads_begin"] = given["pads_end"] = [0] * axes
    ceil = chance(net, 0.4)
    data = written(net, given, dilated=False) | {"pool-method": method, "exclude-pad": exclude}
    sizes = []
    for n, k, s, b, e in zip(
        picture, given["kernel"], given["strides"], given["pads_begin"], given["pads_end"], strict=True
    ):
        span = n + b + e - k
        count = (-(-span // s) if ceil else span // s) + 1
        # No window starts beyond the picture.
        sizes.append(count - 1 if (count - 1) * s >= n + b else count)
    if ceil or chance(net, 0.3):
        name = "rounding_type" if net.version > 2 or chance(net) else "rounding-type"
        data[name] = "ceil" if ceil else "floor"
    more_after = any(e > b for b, e in zip(given["pads_begin"], given["pads_end"], strict=True))
    if method == "avg" and not exclude and (more_after or (ceil and any(given["pads_begin"]))):
        # 2020.1 divides windows that hang over by another number, and leaves out pads after the image.
        net.only = ("2020.4",)
    shape = (size(net, 1, 2), size(net, 1, 3))
    x = net.input(values(net, (*shape, *picture)))
    net.layer("Pooling", [x], [(*shape, *sizes)], data, gap=size(net, 0, 1))


@generates("BinaryConvolution", versions=(6, 7))
def binary_convolution(net: Network) -> None:
    # With three channels 2020.4 refuses it, and 2020.1 mixes their pixels.
    picture, channels, out = shape_of(net, 2, 4, 7), pick(net, 1, 2, 4, 5, 8, 16), size(net, 1, 4)
    given = window(net, 2)
    x = net.input(values(net, (1, channels, *picture)))
    low = values(net, (1, channels, 1, 1), -0.5, 0.5)
    ends = [
        net.const(array) for array in (low, low, np.zeros((1, 1, 1, 1), np.float32), np.ones((1, 1, 1, 1), np.float32))
    ]
    (levels,) = net.layer("FakeQuantize", [x, *ends], [x.shape], {"levels": 2})
    bits = net.rng.integers(0, 2, (out, channels, *given["kernel"])).astype(np.uint8)
    packed = np.packbits(bits.reshape(-1), bitorder="little")
    net.precision = "FP32"
    data = given | {"mode": "xnor-popcount", "pad_value": pick(net, "0.0", "-1.0", "1.0")}
    data |= {"input": channels, "output": out, "group": 1}
    _binary(net, levels, packed, data, (1, out, *swept(picture, given)))


def _binary(net: Network, x: Port, packed: np.ndarray, data: dict[str, Any], shape: Shape) -> None:
    offset = len(net.blob)
    net.blob.extend(packed.tobytes())
    (port,) = net.layer("BinaryConvolution", [x], [shape], data)
    net.layers[port.layer].blobs["weights"] = (offset, packed.size, "BIN")


@generates("DeformableConvolution", versions=(5, 6, 7))
def deformable_convolution(net: Network) -> None:
    picture, channels, out = shape_of(net, 2, 4, 7), 2 * size(net, 1, 2), size(net, 1, 3)
    deformable = int(pick(net, 1, 2))
    given = window(net, 2)
    sizes = swept(picture, given)
    x = net.input(values(net, (1, channels, *picture)))
    taps = given["kernel"][0] * given["kernel"][1]
    offsets = net.input(values(net, (1, 2 * taps * deformable, *sizes), -1.5, 1.5))
    data = given | {"group": 1, "deformable_group": deformable, "output": out}
    blobs = {"weights": values(net, (out, channels, *given["kernel"]))}
    net.layer("DeformableConvolution", [x, offsets], [(1, out, *sizes)], data, blobs)
