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


def check_model_files(
    output: str, read: Mapping[str, str], option: str = "-o", *, overwrite: bool | None = None
) -> None:
    """Raise InputError unless an .xml and the .bin beside it can be written without overwriting a file that is read.

    Args:
        output: the .xml, as the option names it.
        read: the files that are read, with what they are.
        option: the option that names the file, for messages.
        overwrite: see ``check_beside``.
    """
    target = Path(output)
    if target.suffix.lower() != ".xml":
        raise InputError(f"{option} {output} does not end in .xml")
    for path in (target, target.with_suffix(".bin")):
        check_file(option, path, read)
    check_beside(target, target.with_suffix(".bin"), overwrite=overwrite, option=option)


def check_beside(xml: Path, *beside: Path, overwrite: bool | None = None, option: str = "") -> None:
    """Raise InputError if a file to write that has not been named exists, and does not belong to the .xml.

    The .xml is replaced since it has been named. The weights and arrays beside it are replaced with it if it is an IR;
    else they may be anything.

    Args:
        xml: the .xml, which may exist.
        beside: the files that are written with it.
        overwrite: whether any file is replaced; None where there is no such option for the user.
        option: the option that names the .xml, for messages.
    """
    # A link to nothing holds nothing, and what is not a regular file is refused by its kind, whatever is asked for.
    taken = next((path for path in beside if path.is_file()), None)
    if taken is None or overwrite or is_ir_file(xml):
        return
    where = f"exists without {xml.name} beside it" if not xml.exists() else f"exists, and {xml.name} is not an IR"
    way = "another name leaves it"
    if overwrite is not None:
        way = "--overwrite replaces it" if option else "overwrite=True replaces it"
    raise InputError(f"{f'{option} {xml}: ' if option else ''}{taken} {where}: {way}")


def is_ir_file(path: Path) -> bool:
    """Whether a file exists and begins as an IR does."""
    try:
        with path.open("rb") as file:
            return b"<net" in file.read(1 << 12)
    except OSError:
        return False


def check_target(model: ModelGraph, xml: Path, overwrite: bool = False) -> None:
    """Raise InputError unless a model may be saved as ``xml`` and the .bin beside it.

    The name must end in .xml: what is beside another name with .bin may be anything. The .bin must not be one that
    holds constants of the model and is not that of the same .xml: external data of ONNX, or the .bin of another .xml.
    See ``check_beside`` for one that is neither.
    """
    if xml.suffix.lower() != ".xml":
        raise InputError(f"{str(xml)!r} does not end in .xml, as the name of an IR does")
    binary = xml.with_suffix(".bin")
    if any(is_same_file(binary, path) for path in _files(model, xml)):
        raise InputError(f"{binary} holds constants of the model and would be overwritten: save it under another name")
    if model.path is None or not is_same_file(model.path, xml):
        check_beside(xml, binary, overwrite=overwrite)


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
