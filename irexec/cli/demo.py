"""irexec demo: a small classifier of digits, a faulty copy, an image and the names of the classes."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import click

from irexec.cli import render
from irexec.cli.option_groups import command, flag
from irexec.cli.values import FilePath
from irexec.display import Text
from irexec.errors import InputError
from irexec.io.files import replacing
from irexec.messages import counted

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


_NEXT = (
    ("the smallest part with the fault", "reduce {faulty} -o {folder}/min.xml --against {model}"),
    ("what differs in the files", "diff {model} {faulty}"),
    ("the cost of each layer", "inspect {model} --cost"),
    ("a page that draws the graph", "graph {model} -o {folder}/graph.html"),
    ("all commands", "--help"),
)


@command()
@click.argument("folder", type=FilePath(), default="irexec-demo")
@flag("--json", "as_json", "Versioned JSON: the files and the commands, which are not run.")
def demo(folder: str, as_json: bool) -> None:
    """Write a small sample into FOLDER (default: irexec-demo), run validate, infer and compare on it, and print
    what comes next.

    \b
    irexec demo
    irexec demo /tmp/try
    """
    from irexec.cli.main import run

    made = write_demo(folder)
    # The commands to continue with, by what they show.
    names = {"model": made.path("classifier.xml"), "faulty": made.path("faulty.xml"), "folder": made.folder}
    quoted = {name: shlex.quote(path) for name, path in names.items()}
    shown, following = _shown(made), {title: text.format(**quoted) for title, text in _NEXT}
    if as_json:
        commands = [f"irexec {text}" for text in (*shown.values(), *following.values())]
        render.as_json({"folder": made.folder, "files": list(made.files), "commands": commands})
        return
    render.show(f"{made.folder}: {counted(len(made.files), 'file')}")
    for title, text in shown.items():
        render.show(["", Text(f"# {title}", "title"), Text(f"> irexec {text}", "code")])
        run(shlex.split(text))
    render.show(["", "next:", [Text(f"  irexec {text}  # {title}", "code") for title, text in following.items()]])


def _shown(made: Demo) -> dict[str, str]:
    """The commands that are run, without the name of the program, by what they show."""
    model, faulty, image, labels = (
        shlex.quote(made.path(name)) for name in ("classifier.xml", "faulty.xml", "digit_7.png", "labels.txt")
    )
    # Pillow is an extra, and without it no image is read.
    inputs = f"-i {image} --scale 255" if find_spec("PIL") else "-i random"
    return {
        "every port, attribute, edge and weight range is checked": f"validate {model}",
        "the model is run": f"infer {model} {inputs} --topk 3 --labels {labels}",
        "a model with other pads in one layer: where does it diverge?": f"compare {model} {faulty} -i random",
    }
