"""Images as inputs and results: files of them, and the arrays that a model reads and writes."""

from __future__ import annotations

import io
import struct
import warnings
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import IO, Any, Literal

import numpy as np

from irexec.analysis.model import Port
from irexec.compile.memory_limit import MemoryLimit
from irexec.errors import InputError, ModelError, OpError, UnsupportedError
from irexec.io.processes import silenced_stderr
from irexec.io.reading import NotRegularFileError, open_regular
from irexec.ir.dims import PartialShape, shape_text
from irexec.messages import counted

IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm", ".pbm")
MODES = {1: "L", 3: "RGB", 4: "RGBA"}
"""Pillow's modes by the number of channels that a model may expect."""

# Pillow is given the formats by name: others start programs (PostScript starts Ghostscript) or are rarely tested.
_FORMATS = ("PNG", "JPEG", "BMP", "GIF", "WEBP", "TIFF", "PPM")
# Modes of Pillow with more than 8 bits per channel, all of them of one channel.
_DEEP_MODES = ("F", "I", "I;16", "I;16L", "I;16B", "I;16N")
# How the pixels of a file are moved by each EXIF orientation so that the image is upright; 1 is upright.
_ORIENTATION = 0x0112
_UPRIGHT = {
    2: "FLIP_LEFT_RIGHT", 3: "ROTATE_180", 4: "FLIP_TOP_BOTTOM", 5: "TRANSPOSE", 6: "ROTATE_270", 7: "TRANSVERSE",
    8: "ROTATE_90",
}  # fmt: skip
# What decoders raise for files that are damaged.
_DAMAGED = (
    OSError, ValueError, SyntaxError, EOFError, TypeError, LookupError, ArithmeticError, AttributeError, RuntimeError,
    AssertionError, struct.error, zlib.error,
)  # fmt: skip

# Bytes of a pixel in Pillow: it is decoded, converted and rotated upright, which are copies of 4 bytes; then resized
# and made a float of each channel, and a value of the input's type, of at most 8 bytes.
_DECODED = 12
_RESIZED = 4
_ARRAYS = 1 + 4 + 8


Resize = Literal["stretch", "fit", "crop", "none"]
Notify = Callable[[str], None]


def load_pillow() -> Any:
    """Pillow; raises UnsupportedError if it is not installed."""
    try:
        import PIL.Image
        import PIL.ImageOps
    except ImportError:
        raise UnsupportedError("images need Pillow, which is not installed: pip install pillow") from None
    # Without any handler logging prints what Pillow reports; the same is in what it raises.
    import logging

    logger = logging.getLogger("PIL")
    if not any(isinstance(handler, logging.NullHandler) for handler in logger.handlers):
        logger.addHandler(logging.NullHandler())
    return PIL


def read_pixels(
    path: str, channels: int, size: tuple[int | None, int | None], resize: Resize | None, notify: Notify,
    memory: MemoryLimit, content: bytes | np.ndarray | None = None,
) -> np.ndarray:  # fmt: skip
    """The pixels of an image, [height, width, channels]: uint8, or float32 above 8 bits per channel.

    Args:
        path: the file.
        channels: 1, 3 or 4; of more than 8 bits only one channel is read, which 3 share.
        size: the width and height to resize to; None is that of the file.
        resize: as in ImageOptions.
        notify: called with what the user might not expect.
        memory: the limit of the image, all copies of it included.
        content: the bytes of the file, or its pixels, uint8 of [height, width] or [height, width, channels]; None if it
            is to be read.

    Raises:
        ModelError: the file is not a readable image, or takes too much memory.
        UnsupportedError: Pillow is not installed.
        InputError: the image has another size than it should or too few channels.
    """
    pillow = load_pillow()
    try:
        image = _read(pillow, path, content, channels, size, notify, memory)
        # The orientation decides what is the width, so that it is known only now.
        width, height = size[0] or image.width, size[1] or image.height
        if (width, height) != image.size:
            image = _resized(pillow, image, (width, height), resize, path, notify)
        pixels = np.asarray(image).reshape(height, width, -1)
    except MemoryError:
        raise ModelError(f"{path}: there is not enough memory for the image") from None
    return np.broadcast_to(pixels, (height, width, channels))


def _read(
    pillow: Any, path: str, content: bytes | np.ndarray | None, channels: int, size: tuple[int | None, int | None],
    notify: Notify, memory: MemoryLimit,
) -> Any:  # fmt: skip
    """The upright image, in the mode of ``channels`` channels, or as 32-bit floats of one channel."""
    if isinstance(content, np.ndarray):
        image = _of_pixels(pillow, path, content)
        _check_memory(path, image.size, size, channels, memory)
        return image.convert(MODES[channels])
    with ExitStack() as stack:
        with _damage(pillow, path, notify):
            file = stack.enter_context(open_regular(path) if content is None else io.BytesIO(content))
            if not file.read(1):
                raise ModelError(f"{path}: not a readable image: it is empty")
            file.seek(0)
            opened = stack.enter_context(pillow.Image.open(file, formats=_FORMATS))
        _check_memory(path, opened.size, size, channels, memory)
        with _damage(pillow, path, notify):
            with silenced_stderr():
                opened.load()
            method = _UPRIGHT.get(opened.getexif().get(_ORIENTATION))
            image = opened if opened.mode in _DEEP_MODES else opened.convert(MODES[channels])
            image = image if method is None else image.transpose(pillow.Image.Transpose[method])
            is_animated = getattr(opened, "is_animated", False)
        if is_animated:
            notify(f"{path} has several images, of which the first is taken")
        return image if image.mode not in _DEEP_MODES else _floats(pillow, image, path, channels, notify)


def _of_pixels(pillow: Any, path: str, pixels: np.ndarray) -> Any:
    count = pixels.shape[2] if pixels.ndim == 3 else 1
    if pixels.dtype != np.uint8 or pixels.ndim not in (2, 3) or count not in MODES or not pixels.size:
        raise InputError(
            f"{path} is {pixels.dtype}{list(pixels.shape)}, an image is uint8 of [height, width] or [height, width, "
            "channels], with 1, 3 or 4 channels"
        )
    return pillow.Image.fromarray(pixels[:, :, 0] if count == 1 and pixels.ndim == 3 else pixels)


def _floats(pillow: Any, image: Any, path: str, channels: int, notify: Notify) -> Any:
    if channels == 4:
        raise InputError(f"{path} has one channel of more than 8 bits, the model expects 4 channels")
    with np.errstate(all="ignore"):
        values = np.asarray(image).astype(np.float32)
    notify(
        f"{path} has values of more than 8 bits ({values.min():g}..{values.max():g}), which are taken as they are, "
        "not as 0..255"
    )
    return pillow.Image.fromarray(values)


@contextmanager
def _damage(pillow: Any, path: str, notify: Notify) -> Iterator[None]:
    """Raise errors of Pillow as ModelError, and report its warnings as notes. Only Pillow is called in the block."""
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            # The limit from which Pillow warns is of no use: memory is compared with what is available.
            warnings.simplefilter("ignore", pillow.Image.DecompressionBombWarning)
            yield
    except FileNotFoundError:
        raise ModelError(f"{path}: no such file") from None
    except NotRegularFileError as error:
        raise ModelError(f"{path}: cannot be read: {error.strerror}") from None
    except pillow.UnidentifiedImageError:
        raise ModelError(f"{path}: not a readable image: it is none of {', '.join(_FORMATS)}") from None
    except pillow.Image.DecompressionBombError:
        raise ModelError(
            f"{path}: has more than {2 * pillow.Image.MAX_IMAGE_PIXELS:,} pixels, which are not read"
        ) from None
    except _DAMAGED as error:
        raise ModelError(f"{path}: not a readable image: {str(error) or type(error).__name__}") from None
    for text in dict.fromkeys(str(warning.message) for warning in caught):
        notify(f"{path}: {text}")


def _check_memory(
    path: str, size: tuple[int, int], wanted: tuple[int | None, int | None], channels: int, memory: MemoryLimit
) -> None:
    """Raise ModelError if decoding or resizing the image takes more memory than it may."""
    (width, height), target = size, (wanted[0] or size[0], wanted[1] or size[1])
    if not width or not height:
        raise ModelError(f"{path}: is {width}x{height}, which has no pixels")
    resized = "" if target == size else f", resized to {target[0]}x{target[1]},"
    taken = width * height * _DECODED + target[0] * target[1] * (_RESIZED + _ARRAYS * channels)
    try:
        memory.check_memory(taken, f"an image of {width}x{height}{resized}")
    except OpError as error:
        raise ModelError(f"{path}: {error}") from None


def _resized(pillow: Any, image: Any, size: tuple[int, int], resize: Resize | None, path: str, notify: Notify) -> Any:
    have, want = (f"{width}x{height}" for width, height in (image.size, size))
    if resize == "none":
        raise InputError(f"{path} is {have}, the model expects {want}: --resize stretch, fit or crop makes it so")
    method = pillow.Image.Resampling.BILINEAR
    if resize == "fit":
        return _padded(pillow, image, size, method)
    if resize == "crop":
        return pillow.ImageOps.fit(image, size, method)
    if resize is None and image.width * size[1] != image.height * size[0]:
        notify(f"{path} is stretched from {have} to {want}; --resize fit or crop keeps the proportions")
    return image.resize(size, method)


def _padded(pillow: Any, image: Any, size: tuple[int, int], method: Any) -> Any:
    """The image in its proportions in the middle of a black one of this size."""
    if image.width * size[1] > image.height * size[0]:
        # As ImageOps.pad, which however drops an image of which it would leave less than a row.
        inner = (size[0], max(1, round(image.height / image.width * size[0])))
    else:
        inner = (max(1, round(image.width / image.height * size[1])), size[1])
    whole = pillow.Image.new(image.mode, size, 0)
    whole.paste(image.resize(inner, method), (round((size[0] - inner[0]) / 2), round((size[1] - inner[1]) / 2)))
    return whole


def write_png(file: IO[bytes], pixels: np.ndarray) -> None:
    """Write uint8 pixels, [height, width] or [height, width, channels].

    Raises:
        UnsupportedError: Pillow is not installed.
    """
    load_pillow().Image.fromarray(pixels).save(file, "PNG")


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
    """The image as the array that ``port`` expects; ``notify`` gets sentences about what the user might not expect.

    ``content``, if given, is used in place of the file: its bytes, or its pixels as uint8.

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
