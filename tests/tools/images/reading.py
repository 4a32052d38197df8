"""Images that are made and read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from irexec.analysis.model import Port
from irexec.dtypes.elements import F32, Element
from irexec.ir.graph import Node
from irexec.tools.images import ImageOptions, read_image, result_pixels


def port(*shape: int, element: Element = F32) -> Port:
    """An input of this shape."""
    return Port("x", ("x",), element, shape, Node(0, "x", "Parameter", "opset1"))


def read(path: Path, target: Port, **options: Any) -> tuple[np.ndarray, list[str]]:
    """The array, and what the user is told."""
    notes: list[str] = []
    return read_image(str(path), target, ImageOptions(**options), notes.append), notes


def saved(tmp_path: Path, pixels: Any, name: str = "x.png", dtype: Any = np.uint8, **options: Any) -> Path:
    Image.fromarray(np.asarray(pixels, dtype)).save(tmp_path / name, **options)
    return tmp_path / name


# 2 rows, 4 columns: black, black, white, white
WIDE = [[0, 0, 255, 255], [0, 0, 255, 255]]


def pixels(result: Any, dtype: Any = np.float32, **options: Any) -> tuple[Any, list[str]]:
    """A result as pixels, and what the user is told."""
    notes: list[str] = []
    return result_pixels("y", np.asarray(result, dtype), ImageOptions(**options), notes.append).tolist(), notes
