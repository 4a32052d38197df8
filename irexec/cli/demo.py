"""irexec demo"""

from __future__ import annotations

import shlex
from importlib.util import find_spec

import click

from irexec.cli import render
from irexec.cli.option_groups import command, flag
from irexec.cli.values import FilePath
from irexec.display import Text
from irexec.messages import counted
from irexec.tools.demo import Demo, write_demo

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
    shown, following = _shown(made), _filled(made)
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


def _filled(made: Demo) -> dict[str, str]:
    """The commands to continue with, by what they show."""
    names = {"model": made.path("classifier.xml"), "faulty": made.path("faulty.xml"), "folder": made.folder}
    quoted = {name: shlex.quote(path) for name, path in names.items()}
    return {title: text.format(**quoted) for title, text in _NEXT}
