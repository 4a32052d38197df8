"""Files that results are written to: whole or not at all, and never over what the run has read."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from irexec.errors import InputError
from irexec.io.files import new_file
from irexec.io.output_file import check_file
from irexec.tools.arrays.files import write_npz
from irexec.tools.images.files import Notify, load_pillow, write_png
from irexec.tools.images.images import ImageOptions, result_pixels
from irexec.tools.run.dump import check_dump_folder

_SUFFIXES = (".npz", ".png")


def check_outputs(output: str | None, dump_folder: str | None, read: Mapping[str, str]) -> None:
    """Raise before the run what would keep its results from being written.

    Args:
        output: the .npz or .png.
        dump_folder: the folder for all tensors.
        read: the files that the run reads, with what they are.

    Raises:
        InputError: the path is of another kind, or something of the user's would be overwritten.
        UnsupportedError: Pillow is needed and not installed.
    """
    if output is not None:
        _check_output(Path(output), read)
    if dump_folder is not None:
        folder = Path(dump_folder)
        check_dump_folder(folder)
        inside = {**read, **({output: "the output"} if output is not None else {})}
        for file, what in inside.items():
            # Path.resolve raises RuntimeError for links in a cycle, here and below.
            if Path(os.path.realpath(file)).is_relative_to(os.path.realpath(folder)):
                raise InputError(f"--dump-layers replaces the folder {dump_folder}, in which {file} is {what}")


def _check_output(output: Path, read: Mapping[str, str]) -> None:
    if output.suffix.lower() not in _SUFFIXES:
        raise InputError(f"-o {output}: results are written to a .npz, or an image to a .png")
    check_file("-o", output, read)
    if output.suffix.lower() == ".png":
        load_pillow()


def check_saved_inputs(path: str, output: str | None, read: Mapping[str, str]) -> None:
    """Raise InputError unless inputs can be written to a .npz that is neither read nor the output."""
    if not path.lower().endswith(".npz"):
        raise InputError(f"--save-inputs {path}: inputs are written to a .npz")
    check_file("--save-inputs", Path(path), {**read, **({output: "the output"} if output is not None else {})})


def write_results(path: str, results: Mapping[str, np.ndarray], image: ImageOptions, notify: Notify) -> None:
    """Write results to a .npz, or the only one of them to a .png.

    Raises:
        InputError: an array to be written as an image is not one image.
        ModelError: the file cannot be written; what was there before is as it was.
    """
    pixels = _pixels(path, results, image, notify) if path.lower().endswith(".png") else None
    with new_file(path) as file:
        if pixels is None:
            write_npz(file, results)
        else:
            write_png(file, pixels)


def _pixels(path: str, results: Mapping[str, np.ndarray], image: ImageOptions, notify: Notify) -> np.ndarray:
    if len(results) != 1:
        raise InputError(
            f"-o {path} takes one result, there are {len(results)} ({', '.join(results)}): choose one with --tensor"
        )
    ((name, result),) = results.items()
    return result_pixels(name, result, image, notify)
