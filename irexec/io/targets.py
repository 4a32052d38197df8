"""Where a model may be saved: nothing but the .xml and the .bin of that name is overwritten, and no file that its
constants are in.
"""

from __future__ import annotations

from pathlib import Path

from irexec.errors import InputError
from irexec.io.regular_files import is_same_file
from irexec.io.weights_file import WeightsSlice
from irexec.ir.graph import ModelGraph


def check_target(model: ModelGraph, xml: Path) -> None:
    """Raise InputError unless a model may be saved as ``xml`` and the .bin beside it.

    The name must end in .xml: what is beside another name with .bin may be anything. The .bin must not be one that
    holds constants of the model and is not that of the same .xml: external data of ONNX, or the .bin of another .xml.
    """
    if xml.suffix.lower() != ".xml":
        raise InputError(f"{str(xml)!r} does not end in .xml, as the name of an IR does")
    binary = xml.with_suffix(".bin")
    if any(is_same_file(binary, path) for path in _files(model, xml)):
        raise InputError(f"{binary} holds constants of the model and would be overwritten: save it under another name")


def _files(model: ModelGraph, xml: Path) -> set[Path]:
    """The files with constants of a model, but not those of the .bin that goes with ``xml``."""
    is_other = model.path is not None and not is_same_file(model.path, xml)
    constants = [node.constant for node in model.walk() if node.constant is not None]
    # A constant that was read from an IR has an offset. A model that was built from that IR may replace it.
    fetches = [constant.fetch for constant in constants if is_other or constant.offset is None]
    used = {
        fetch.weights.path for fetch in fetches if isinstance(fetch, WeightsSlice) and fetch.weights.path is not None
    }
    return used.union(model.external_files)
