"""Pictures as inputs: read, resized to what the model expects, laid out, shifted and scaled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from irexec.analysis.model import Port
from irexec.errors import InputError, ModelError
from irexec.ir.dims import PartialShape, shape_text

PICTURES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm")
_MODES = {1: "L", 3: "RGB", 4: "RGBA"}


@dataclass(frozen=True)
class Picture:
    """How a picture becomes an input: (pixel - mean) / scale, pixels in 0..255.

    Attributes:
        layout: the order of the input's axes, such as "NCHW" or "HWC"; guessed from its shape if None.
        mean, scale: one number, or one per channel.
        bgr: whether the channels go blue, green, red.
    """

    layout: str | None = None
    mean: tuple[float, ...] = (0.0,)
    scale: tuple[float, ...] = (1.0,)
    bgr: bool = False


def read_picture(path: str, port: Port, how: Picture) -> np.ndarray:
    """The picture as the array that ``port`` expects.

    Raises:
        ModelError: the file is not a readable picture, or pillow is not installed.
        InputError: the input does not take a picture, or the layout or means do not fit it.
    """
    layout, shape = _layout(port, how)
    sizes = dict(zip(layout, shape, strict=True))
    channels = sizes.get("C", 1)
    picture = _open(path, channels if isinstance(channels, int) else 3, sizes.get("H"), sizes.get("W"))
    if how.bgr:
        picture = picture[:, :, ::-1]
    return _typed(_arranged(_scaled(picture, how), layout), port)


def _layout(port: Port, how: Picture) -> tuple[str, tuple[Any, ...]]:
    shape = port.shape
    if shape is None:
        raise InputError(f"the rank of input {port.name!r} is not known, so it takes no picture: give --shape")
    layout = how.layout.upper() if how.layout else _guess(shape)
    if layout is None or len(layout) != len(shape) or not set("HW") <= set(layout) <= set("NCHW") or len(set(layout)) != len(layout):
        hint = f"layout {how.layout!r} does not fit it" if how.layout else "say how with --layout"
        raise InputError(f"input {port.name!r} has shape {shape_text(shape)}, which does not look like a picture: {hint}")
    batch = dict(zip(layout, shape, strict=True)).get("N", 1)
    if isinstance(batch, int) and batch != 1:
        raise InputError(f"input {port.name!r} takes {batch} pictures at once: give an array, or --shape with a batch of 1")
    return layout, shape


def _guess(shape: PartialShape) -> str | None:
    if shape is None or not 2 <= len(shape) <= 4:
        return None
    if len(shape) == 2:
        return "HW"
    batch = "N" if len(shape) == 4 else ""
    if shape[-3] in _MODES:
        return batch + "CHW"
    return batch + "HWC" if shape[-1] in _MODES else None


def _open(path: str, channels: int, height: Any, width: Any) -> np.ndarray:
    if channels not in _MODES:
        raise InputError(f"a picture has 1, 3 or 4 channels, the model expects {channels}")
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError:
        raise ModelError(f"{path}: pictures need pillow (pip install 'irexec[images]')") from None
    try:
        with Image.open(path) as opened:
            picture = opened.convert(_MODES[channels])
    except FileNotFoundError:
        raise ModelError(f"{path}: there is no such file") from None
    except (OSError, ValueError, SyntaxError, UnidentifiedImageError, Image.DecompressionBombError) as error:
        raise ModelError(f"{path}: not a readable picture: {error}") from None
    size = (width if isinstance(width, int) else picture.width, height if isinstance(height, int) else picture.height)
    if size != picture.size:
        picture = picture.resize(size, Image.Resampling.BILINEAR)
    return np.asarray(picture, np.float32).reshape(picture.height, picture.width, channels)


def _scaled(picture: np.ndarray, how: Picture) -> np.ndarray:
    for what, numbers in (("mean", how.mean), ("scale", how.scale)):
        if len(numbers) not in (1, picture.shape[2]):
            raise InputError(f"--{what} has {len(numbers)} numbers, the picture has {picture.shape[2]} channels")
    return (picture - np.asarray(how.mean, np.float32)) / np.asarray(how.scale, np.float32)


def _arranged(picture: np.ndarray, layout: str) -> np.ndarray:
    axes = [axis for axis in layout if axis != "N"]
    if "C" not in axes:
        picture = picture[:, :, 0]
    arranged = picture.transpose(["HWC".index(axis) for axis in axes])
    return np.expand_dims(arranged, layout.index("N")) if "N" in layout else arranged


def _typed(array: np.ndarray, port: Port) -> np.ndarray:
    if port.element is None or port.element.kind in ("string", "boolean"):
        raise InputError(f"input {port.name!r} is {port.element}, which takes no picture")
    if port.element.is_integer:
        limits = np.iinfo(port.element.carrier)
        array = np.clip(np.rint(array), limits.min, limits.max)
    return np.ascontiguousarray(array.astype(port.element.carrier))
