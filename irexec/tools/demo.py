"""The files of ``irexec demo``: a small classifier of digits, a faulty copy, an image and the names of the classes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from irexec.errors import InputError
from irexec.io.files import replacing

_SAMPLES = ("classifier.xml", "classifier.bin", "digit_7.png", "labels.txt")
_FAULT = (
    '<data strides="1, 1" pads_begin="1, 1" pads_end="1, 1"',
    '<data strides="1, 1" pads_begin="0, 0" pads_end="2, 2"',
)
"""An attribute of the second convolution, as it is and as it is in the faulty model; all shapes stay the same."""


@dataclass(frozen=True)
class Demo:
    """Files that were written.

    Attributes:
        folder: the folder.
        files: the paths.
    """

    folder: str
    files: tuple[str, ...]

    def path(self, name: str) -> str:
        """The path of a file by its name."""
        return str(Path(self.folder) / name)


def samples_folder() -> Path:
    """The folder of the samples: in the package where it is installed, in the repository otherwise."""
    package = Path(__file__).parents[1]
    inside = package / "samples"
    return inside if inside.is_dir() else package.parent / "samples" / "digits"


def write_demo(folder: str) -> Demo:
    """Write the files of the demo into a folder. Files that are there already, with the same contents, stay.

    Raises:
        InputError: the folder has a file of one of these names with other contents, or the samples are not installed.
        OSError: a file cannot be written.
    """
    source = samples_folder()
    try:
        contents = {name: (source / name).read_bytes() for name in _SAMPLES}
    except OSError as error:
        raise InputError(f"the samples are not installed: {error.filename}: {error.strerror}") from None
    before, after = (text.encode() for text in _FAULT)
    head, second, tail = contents["classifier.xml"].rpartition(before)
    assert second, "the classifier has no such attribute"
    contents |= {"faulty.xml": head + after + tail, "faulty.bin": contents["classifier.bin"]}
    target = Path(folder)
    if target.exists() and not target.is_dir():
        raise InputError(f"{folder} is not a folder")
    missing = {}
    for name, data in contents.items():
        path = target / name
        if not path.exists():
            missing[path] = data
        elif not path.is_file() or path.read_bytes() != data:
            raise InputError(f"{path} exists with other contents: irexec demo FOLDER writes into another folder")
    target.mkdir(parents=True, exist_ok=True)
    with replacing(*missing) as files:
        for file, data in zip(files, missing.values(), strict=True):
            file.write(data)
    return Demo(folder, tuple(str(target / name) for name in contents))
