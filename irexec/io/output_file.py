"""A file that a command will write: refused before the run where it could not be written."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from irexec.errors import InputError
from irexec.io.files import resolved_target
from irexec.io.regular_files import NotRegularFileError, is_same_file


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


def check_model_files(output: str, read: Mapping[str, str]) -> None:
    """Raise InputError unless an .xml and the .bin beside it can be written without overwriting a file that is read.

    Args:
        output: the .xml, as -o names it.
        read: the files that are read, with what they are.
    """
    target = Path(output)
    if target.suffix.lower() != ".xml":
        raise InputError(f"-o {output} does not end in .xml")
    for path in (target, target.with_suffix(".bin")):
        check_file("-o", path, read)
