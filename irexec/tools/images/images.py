"""Images as inputs (read, resized, laid out, shifted and scaled) and results written as images."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from irexec.analysis.model import Port
from irexec.compile.memory_limit import MemoryLimit
from irexec.errors import InputError
from irexec.ir.dims import PartialShape, shape_text
from irexec.messages import counted
from irexec.tools.images.files import MODES, Notify, Resize, read_pixels


@dataclass(frozen=True)
class ImageOptions:
    """The arithmetic of images: an input is (pixel - mean) / scale, pixels in 0..255; a result is value * scale + mean.

    Attributes:
        layout: the order of the input's axes, such as "NCHW" or "HWC"; guessed from its shape if None.
        mean, scale: one value, or one per channel in the order of the model's channels.
        bgr: whether the model's channels are in BGR order.
        resize: the treatment of an image of another size: "stretch" changes width and height independently, "fit" keeps
            the proportions and pads with black, "crop" keeps them and cuts off what is too much at both sides, "none"
            refuses it; None stretches and says so.
    """

    layout: str | None = None
    mean: tuple[float, ...] = (0.0,)
    scale: tuple[float, ...] = (1.0,)
    bgr: bool = False
    resize: Resize | None = None


def read_image(
    path: str, port: Port, options: ImageOptions, notify: Notify, memory: MemoryLimit | None = None,
    content: bytes | np.ndarray | None = None,
) -> np.ndarray:  # fmt: skip
    """The image as the array that ``port`` expects; ``notify`` is called with what the user might not expect.

    ``content`` has the bytes of the file, or its pixels as uint8, if they are not to be read.

    Raises:
        ModelError: the file is not a readable image.
        UnsupportedError: Pillow is not installed.
        InputError: the input does not take an image, or the options do not fit it.
    """
    layout, shape = _input_layout(port, options)
    sizes = dict(zip(layout, shape, strict=True))
    channels = _channels(port, sizes.get("C", 1))
    mean, scale = _per_channel(options, channels)
    width, height = (size if isinstance(size, int) else None for size in (sizes["W"], sizes["H"]))
    pixels = read_pixels(path, channels, (width, height), options.resize, notify, memory or MemoryLimit(), content)
    return _typed(_laid_out(pixels[:, :, ::-1] if options.bgr else pixels, mean, scale, layout), pixels, port, path)


def _channels(port: Port, channels: Any) -> int:
    """The number of channels that the input takes, 3 if that is not known."""
    if port.element is None or port.element.kind in ("string", "boolean"):
        raise InputError(f"input {port.name!r} is {port.element}, which takes no image")
    count = channels if isinstance(channels, int) else 3
    if count not in MODES:
        raise InputError(f"an image has 1, 3 or 4 channels, the model expects {count}")
    return count


def _input_layout(port: Port, options: ImageOptions) -> tuple[str, tuple[Any, ...]]:
    shape = port.shape
    if shape is None:
        raise InputError(f"the rank of input {port.name!r} is not known, so that it takes no image: give --shape")
    layout = options.layout.upper() if options.layout else _guessed_layout(shape)
    if layout is None or not _fits(layout, len(shape)):
        hint = f"layout {options.layout!r} does not fit it" if options.layout else "name its axes with --layout"
        raise InputError(
            f"input {port.name!r} has shape {shape_text(shape)}, which does not look like an image: {hint}"
        )
    if 0 in shape:
        raise InputError(f"input {port.name!r} has shape {shape_text(shape)}, which has no pixels")
    batch = dict(zip(layout, shape, strict=True)).get("N", 1)
    if isinstance(batch, int) and batch != 1:
        raise InputError(
            f"input {port.name!r} takes {batch} images at once: give an array, or --shape with a batch of 1"
        )
    return layout, shape


def _fits(layout: str, rank: int) -> bool:
    return len(layout) == rank == len(set(layout)) and set("HW") <= set(layout) <= set("NCHW")


def _guessed_layout(shape: PartialShape) -> str | None:
    if shape is None or not 2 <= len(shape) <= 4:
        return None
    if len(shape) == 2:
        return "HW"
    batch = "N" if len(shape) == 4 else ""
    if shape[-3] in MODES:
        return batch + "CHW"
    return batch + "HWC" if shape[-1] in MODES else None


def _per_channel(options: ImageOptions, channels: int) -> tuple[np.ndarray, np.ndarray]:
    for name, values in (("mean", options.mean), ("scale", options.scale)):
        if len(values) not in (1, channels):
            raise InputError(
                f"--{name} has {counted(len(values), 'value')}, the image has {counted(channels, 'channel')}"
            )
    with np.errstate(all="ignore"):
        mean, scale = np.asarray(options.mean, np.float32), np.asarray(options.scale, np.float32)
    if not np.isfinite(mean).all():
        raise InputError(f"--mean {_values(options.mean)} has a value that is not finite in 32 bits")
    if not np.isfinite(scale).all() or not scale.all():
        raise InputError(f"--scale {_values(options.scale)} has a value that is not finite, or is 0, in 32 bits")
    return mean, scale


def _values(values: tuple[float, ...]) -> str:
    return ",".join(f"{value:g}" for value in values)


def _laid_out(pixels: np.ndarray, mean: np.ndarray, scale: np.ndarray, layout: str) -> np.ndarray:
    """(pixels - mean) / scale as float32 in this layout; it is the only array of floats that is made."""
    axes = [axis for axis in layout if axis != "N"]
    sizes = dict(zip("HWC", pixels.shape, strict=True))
    array = np.empty([sizes[axis] for axis in axes], np.float32)
    # The same memory as [height, width, channels]; without an axis of channels there is one of them.
    view = array.transpose([axes.index(axis) for axis in "HWC" if axis in axes])
    view = view if "C" in axes else view[:, :, np.newaxis]
    with np.errstate(all="ignore"):
        np.subtract(pixels, mean, out=view)
        np.divide(view, scale, out=view)
    return np.expand_dims(array, layout.index("N")) if "N" in layout else array


def _typed(array: np.ndarray, pixels: np.ndarray, port: Port, path: str) -> np.ndarray:
    """The array in the type of the input; integers are rounded and cut to what the type can hold."""
    assert port.element is not None
    carrier = np.dtype(port.element.carrier)
    if port.element.is_integer:
        if np.isnan(array).any():
            raise InputError(f"{path} has NaN, which input {port} cannot hold")
        return _integers(array, carrier)
    with np.errstate(all="ignore"):
        typed = array.astype(carrier, copy=False)
    if np.isfinite(pixels).all() and not np.isfinite(typed).all():
        raise InputError(f"{path} has values that {port.element} cannot hold after --mean and --scale: input {port}")
    return typed


def _integers(array: np.ndarray, carrier: np.dtype) -> np.ndarray:
    """Floats rounded to integers, in place, and cut to the range of the type."""
    np.rint(array, out=array)
    limits = np.iinfo(carrier)
    # The maximum of a wide type is not a float: the next one is beyond it.
    above, below = array >= float(limits.max), array <= float(limits.min)
    array[above | below] = 0
    integers = array.astype(carrier)
    integers[above], integers[below] = limits.max, limits.min
    return integers


def result_pixels(name: str, result: np.ndarray, options: ImageOptions, notify: Notify) -> np.ndarray:
    """A result as uint8 pixels, [height, width] or [height, width, channels]: value * scale + mean, cut to 0..255.

    Its layout is ``options.layout`` if that fits, else guessed from its shape.

    Raises:
        InputError: the result is not one image of 1, 3 or 4 channels, or has values that no pixel has.
    """
    image = _as_image(name, result, options.layout)
    mean, scale = _per_channel(options, image.shape[2])
    with np.errstate(all="ignore"):
        pixels = image * scale + mean
    if not np.isfinite(pixels).all():
        raise InputError(f"result {name!r} has NaN or infinities, which no pixel has")
    outside = int(((pixels < -0.5) | (pixels >= 255.5)).sum())
    if outside:
        notify(
            f"{outside} of {pixels.size} pixel values of result {name!r} are outside 0..255 and are cut; "
            "see --scale and --mean"
        )
    rounded = np.clip(np.rint(pixels[:, :, ::-1] if options.bgr else pixels), 0, 255).astype(np.uint8)
    return rounded[:, :, 0] if rounded.shape[2] == 1 else rounded


def _as_image(name: str, result: np.ndarray, given: str | None) -> np.ndarray:
    """The result as float64 [height, width, channels]."""
    layout = given.upper() if given and _fits(given.upper(), result.ndim) else _guessed_layout(result.shape) or ""
    sizes = dict(zip(layout, result.shape, strict=False))
    fits = bool(layout) and sizes.get("C", 1) in MODES and sizes.get("N", 1) == 1
    if not fits or result.size == 0 or result.dtype.kind not in "fiub":
        raise InputError(
            f"result {name!r} is {result.dtype}{shape_text(result.shape)}, which is not one image of 1, 3 or 4 channels"
        )
    image = result.squeeze(layout.index("N")) if "N" in layout else result
    axes = layout.replace("N", "")
    arranged = image.transpose([axes.index(axis) for axis in "HWC" if axis in axes])
    with np.errstate(all="ignore"):
        return arranged.reshape(sizes["H"], sizes["W"], sizes.get("C", 1)).astype(np.float64)
