"""Files that results are written to: whole or not at all, and never over what the run has read."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from irexec.errors import InputError, ModelError
from irexec.io.files import replacing
from irexec.tools.array_files import write_npz
from irexec.tools.dump import check_dump_folder
from irexec.tools.images import ImageOptions, Notify, load_pillow, result_pixels, write_png

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
            if Path(file).resolve().is_relative_to(folder.resolve()):
                raise InputError(f"--dump-layers replaces the folder {dump_folder}, in which {file} is {what}")


def _check_output(output: Path, read: Mapping[str, str]) -> None:
    if output.suffix.lower() not in _SUFFIXES:
        raise InputError(f"-o {output}: results are written to a .npz, or an image to a .png")
    check_file("-o", output, read)
    if output.suffix.lower() == ".png":
        load_pillow()


def check_file(option: str, output: Path, read: Mapping[str, str]) -> None:
    """Raise InputError unless a file can be written without overwriting one that is read.

    Args:
        option: that names the file, for messages.
        output: the file.
        read: the files that are read, with what they are.
    """
    if output.is_dir():
        raise InputError(f"{option} {output} is a folder")
    if not output.parent.is_dir():
        raise InputError(f"{option} {output}: the folder {output.parent} does not exist")
    if output.exists() and not output.is_file():
        raise InputError(f"{option} {output} is not a regular file")
    for file, what in read.items():
        if _is_same(output, Path(file)):
            raise InputError(f"{option} {output} is {what}, which would be overwritten")


def _is_same(one: Path, other: Path) -> bool:
    """Whether two paths lead to the same file, also by links."""
    try:
        return os.path.samefile(one, other)
    except OSError:
        return one.resolve() == other.resolve()


def write_results(path: str, results: Mapping[str, np.ndarray], image: ImageOptions, notify: Notify) -> None:
    """Write results to a .npz, or the only one of them to a .png.

    Raises:
        InputError: what is to be written as an image is not one image.
        ModelError: the file cannot be written; what was there before is as it was.
    """
    pixels = _pixels(path, results, image, notify) if path.lower().endswith(".png") else None
    try:
        with replacing(Path(path)) as (file,):
            if pixels is None:
                write_npz(file, results)
            else:
                write_png(file, pixels)
    except OSError as error:
        raise ModelError(f"{path}: cannot be written: {error.strerror or error}") from None


def _pixels(path: str, results: Mapping[str, np.ndarray], image: ImageOptions, notify: Notify) -> np.ndarray:
    if len(results) != 1:
        raise InputError(f"-o {path} takes one result, there are {len(results)} ({', '.join(results)}): choose one with --tensor")
    ((name, result),) = results.items()
    return result_pixels(name, result, image, notify)
