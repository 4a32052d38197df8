"""Images as inputs (read, resized, laid out, shifted and scaled) and results written as images."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import IO, Any, Literal

import numpy as np

from irexec.analysis.model import Port
from irexec.errors import InputError, ModelError, UnsupportedError
from irexec.ir.dims import PartialShape, shape_text

IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm", ".pbm")
# Pillow is given the formats by name: others start programs (PostScript starts Ghostscript) or are rarely tested.
_FORMATS = ("PNG", "JPEG", "BMP", "GIF", "WEBP", "TIFF", "PPM")
_MODES = {1: "L", 3: "RGB", 4: "RGBA"}
# Modes of Pillow with more than 8 bits per channel, all of them of one channel.
_DEEP_MODES = ("F", "I", "I;16", "I;16L", "I;16B", "I;16N")

Resize = Literal["stretch", "fit", "crop", "none"]
Notify = Callable[[str], None]


@dataclass(frozen=True)
class ImageOptions:
    """How an image becomes an input: (pixel - mean) / scale, pixels in 0..255; a result is written as value * scale + mean.

    Attributes:
        layout: the order of the input's axes, such as "NCHW" or "HWC"; guessed from its shape if None.
        mean, scale: one value, or one per channel in the order of the model's channels.
        bgr: whether the model's channels are in BGR order.
        resize: what becomes of an image of another size: "stretch" changes width and height independently, "fit" keeps the
            proportions and pads with black, "crop" keeps them and cuts off what is too much at both sides, "none" refuses it;
            None stretches and says so.
    """

    layout: str | None = None
    mean: tuple[float, ...] = (0.0,)
    scale: tuple[float, ...] = (1.0,)
    bgr: bool = False
    resize: Resize | None = None


def read_image(path: str, port: Port, options: ImageOptions, notify: Notify) -> np.ndarray:
    """The image as the array that ``port`` expects; ``notify`` is called with what the user might not expect.

    Raises:
        ModelError: the file is not a readable image.
        UnsupportedError: Pillow is not installed.
        InputError: the input does not take an image, or the options do not fit it.
    """
    layout, shape = _input_layout(port, options)
    sizes = dict(zip(layout, shape, strict=True))
    channels = sizes.get("C", 1)
    pixels = _read_pixels(path, channels if isinstance(channels, int) else 3, sizes.get("H"), sizes.get("W"), options.resize, notify)
    if options.bgr:
        pixels = pixels[:, :, ::-1]
    mean, scale = _per_channel(options, pixels.shape[2])
    return _typed(_laid_out((pixels - mean) / scale, layout), port)


def _input_layout(port: Port, options: ImageOptions) -> tuple[str, tuple[Any, ...]]:
    shape = port.shape
    if shape is None:
        raise InputError(f"the rank of input {port.name!r} is not known, so that it takes no image: give --shape")
    layout = options.layout.upper() if options.layout else _guessed_layout(shape)
    if layout is None or not _fits(layout, len(shape)):
        hint = f"layout {options.layout!r} does not fit it" if options.layout else "name its axes with --layout"
        raise InputError(f"input {port.name!r} has shape {shape_text(shape)}, which does not look like an image: {hint}")
    batch = dict(zip(layout, shape, strict=True)).get("N", 1)
    if isinstance(batch, int) and batch != 1:
        raise InputError(f"input {port.name!r} takes {batch} images at once: give an array, or --shape with a batch of 1")
    return layout, shape


def _fits(layout: str, rank: int) -> bool:
    return len(layout) == rank == len(set(layout)) and set("HW") <= set(layout) <= set("NCHW")


def _guessed_layout(shape: PartialShape) -> str | None:
    if shape is None or not 2 <= len(shape) <= 4:
        return None
    if len(shape) == 2:
        return "HW"
    batch = "N" if len(shape) == 4 else ""
    if shape[-3] in _MODES:
        return batch + "CHW"
    return batch + "HWC" if shape[-1] in _MODES else None


def load_pillow() -> Any:
    try:
        import PIL.Image
        import PIL.ImageOps
    except ImportError:
        raise UnsupportedError("images need Pillow, which is not installed: pip install pillow") from None
    return PIL


def _read_pixels(path: str, channels: int, height: Any, width: Any, resize: Resize | None, notify: Notify) -> np.ndarray:
    """The pixels as float32 [height, width, channels], in 0..255 unless the file has more than 8 bits per channel."""
    if channels not in _MODES:
        raise InputError(f"an image has 1, 3 or 4 channels, the model expects {channels}")
    pillow = load_pillow()
    image = _open(pillow, path, channels, notify)
    size = (width if isinstance(width, int) else image.width, height if isinstance(height, int) else image.height)
    if size != image.size:
        image = _resized(pillow, image, size, resize, path, notify)
    pixels = np.asarray(image, np.float32).reshape(image.height, image.width, -1)
    return np.broadcast_to(pixels, (image.height, image.width, channels))


def _open(pillow: Any, path: str, channels: int, notify: Notify) -> Any:
    """The image upright, in the mode of so many channels, or as 32-bit floats of one channel."""
    try:
        with pillow.Image.open(path, formats=_FORMATS) as opened:
            image = pillow.ImageOps.exif_transpose(opened)
            if image.mode not in _DEEP_MODES:
                return image.convert(_MODES[channels])
            image = pillow.Image.fromarray(np.asarray(image).astype(np.float32), "F")
    except FileNotFoundError:
        raise ModelError(f"{path}: no such file") from None
    except pillow.UnidentifiedImageError:
        raise ModelError(f"{path}: not a readable image: it is none of {', '.join(_FORMATS)}") from None
    except (OSError, ValueError, SyntaxError, EOFError, struct.error, pillow.Image.DecompressionBombError) as error:
        raise ModelError(f"{path}: not a readable image: {error}") from None
    if channels == 4:
        raise InputError(f"{path} has one channel of more than 8 bits, the model expects 4 channels")
    low, high = image.getextrema()
    notify(f"{path} has values of more than 8 bits ({low:g}..{high:g}), which are taken as they are, not as 0..255")
    return image


def _resized(pillow: Any, image: Any, size: tuple[int, int], resize: Resize | None, path: str, notify: Notify) -> Any:
    have, want = (f"{width}x{height}" for width, height in (image.size, size))
    method = pillow.Image.Resampling.BILINEAR
    if resize == "none":
        raise InputError(f"{path} is {have}, the model expects {want}: --resize stretch, fit or crop makes it so")
    if resize == "fit":
        return pillow.ImageOps.pad(image, size, method, color=0)
    if resize == "crop":
        return pillow.ImageOps.fit(image, size, method)
    if resize is None and image.width * size[1] != image.height * size[0]:
        notify(f"{path} is stretched from {have} to {want}; --resize fit or crop keeps the proportions")
    return image.resize(size, method)


def _per_channel(options: ImageOptions, channels: int) -> tuple[np.ndarray, np.ndarray]:
    for name, values in (("mean", options.mean), ("scale", options.scale)):
        if len(values) not in (1, channels):
            raise InputError(f"--{name} has {len(values)} values, the image has {channels} channels")
    return np.asarray(options.mean, np.float32), np.asarray(options.scale, np.float32)


def _laid_out(pixels: np.ndarray, layout: str) -> np.ndarray:
    axes = [axis for axis in layout if axis != "N"]
    if "C" not in axes:
        pixels = pixels[:, :, 0]
    arranged = pixels.transpose(["HWC".index(axis) for axis in axes])
    return np.expand_dims(arranged, layout.index("N")) if "N" in layout else arranged


def _typed(array: np.ndarray, port: Port) -> np.ndarray:
    if port.element is None or port.element.kind in ("string", "boolean"):
        raise InputError(f"input {port.name!r} is {port.element}, which takes no image")
    if port.element.is_integer:
        limits = np.iinfo(port.element.carrier)
        array = np.clip(np.rint(array), limits.min, limits.max)
    return np.ascontiguousarray(array.astype(port.element.carrier))


def result_pixels(name: str, result: np.ndarray, options: ImageOptions, notify: Notify) -> np.ndarray:
    """A result as pixels: value * scale + mean, rounded and cut to 0..255; uint8 [height, width] or [height, width, channels].

    Its layout is ``options.layout`` if that fits, else guessed from its shape.

    Raises:
        InputError: the result is not one image of 1, 3 or 4 channels, or has values that no pixel has.
    """
    image = _as_image(name, result, options.layout)
    mean, scale = _per_channel(options, image.shape[2])
    pixels = image * scale + mean
    if not np.isfinite(pixels).all():
        raise InputError(f"result {name!r} has NaN or infinities, which no pixel has")
    outside = int(((pixels < -0.5) | (pixels >= 255.5)).sum())
    if outside:
        notify(f"{outside} of {pixels.size} pixel values of result {name!r} are outside 0..255 and are cut; see --scale and --mean")
    rounded = np.clip(np.rint(pixels[:, :, ::-1] if options.bgr else pixels), 0, 255).astype(np.uint8)
    return rounded[:, :, 0] if rounded.shape[2] == 1 else rounded


def _as_image(name: str, result: np.ndarray, given: str | None) -> np.ndarray:
    """The result as float64 [height, width, channels]."""
    layout = given.upper() if given and _fits(given.upper(), result.ndim) else _guessed_layout(result.shape) or ""
    sizes = dict(zip(layout, result.shape, strict=False))
    fits = bool(layout) and sizes.get("C", 1) in _MODES and sizes.get("N", 1) == 1
    if not fits or result.size == 0 or result.dtype.kind not in "fiub":
        raise InputError(f"result {name!r} is {result.dtype}{shape_text(result.shape)}, which is not one image of 1, 3 or 4 channels")
    image = result.squeeze(layout.index("N")) if "N" in layout else result
    axes = layout.replace("N", "")
    arranged = image.transpose([axes.index(axis) for axis in "HWC" if axis in axes])
    return arranged.reshape(sizes["H"], sizes["W"], sizes.get("C", 1)).astype(np.float64)


def write_png(file: IO[bytes], pixels: np.ndarray) -> None:
    """Write pixels as ``result_pixels`` gives them.

    Raises:
        UnsupportedError: Pillow is not installed.
    """
    load_pillow().Image.fromarray(pixels).save(file, "PNG")
