"""Files that a command will write: refused before the run where they could not be written, or are not to be."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from irexec.errors import InputError
from irexec.io.files import resolved_target
from irexec.io.reading import NotRegularFileError, is_same_file
from irexec.io.weights_file import WeightsSlice
from irexec.ir.graph import ModelGraph


def check_file(option: str, output: Path, read: Mapping[str, str]) -> None:
    """Raise InputError unless a file can be written without overwriting one that is read.

    Args:
        option: the option that names the file, for messages.
        output: the file.
        read: the files that are read, with what they are.
    """
    if not output.parent.is_dir():
        raise InputError(f"{option} {output}: the folder {output.parent} does not exist")
    try:
        resolved = resolved_target(output)
    except NotRegularFileError as error:
        raise InputError(f"{option} {output} is {error.kind}, not a regular file") from None
    except OSError as error:
        raise InputError(f"{option} {output}: {error.strerror or error}") from None
    if not resolved.parent.is_dir():
        raise InputError(f"{option} {output} is a link into the folder {resolved.parent}, which does not exist")
    for file, what in read.items():
        if is_same_file(output, file):
            raise InputError(f"{option} {output} is {what}, which would be overwritten")


def check_model_files(output: str, read: Mapping[str, str], option: str = "-o") -> None:
    """Raise InputError unless an .xml and the .bin beside it can be written without overwriting a file that is read.

    Args:
        output: the .xml, as the option names it.
        read: the files that are read, with what they are.
        option: the option that names the file, for messages.
    """
    target = Path(output)
    if target.suffix.lower() != ".xml":
        raise InputError(f"{option} {output} does not end in .xml")
    for path in (target, target.with_suffix(".bin")):
        check_file(option, path, read)


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
