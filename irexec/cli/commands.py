"""The commands by name. A command is imported when it is called, so that the list of all of them takes no time."""

from __future__ import annotations

import importlib

import click

from irexec.cli.signals import raise_on_signals

COMMANDS = {
    "infer": "Run a model on arrays, images or generated values.",
    "validate": "Find everything that is wrong with a model, or with many.",
    "explain": "Explain a finding code of validate, such as IR103.",
    "diff": "Show what changed between two models.",
    "inspect": "Show what a model consists of, and what would run.",
    "batch": "Run a model over many images or arrays, on all cores; resumes.",
    "profile": "Show where the time of a model goes.",
    "bench": "Measure how fast a model runs.",
    "compare": "Find where two models diverge, or one model in two runtimes.",
    "serve": "Answer requests to models, over HTTP and gRPC.",
    "convert": "Convert an ONNX model to IR.",
    "graph": "Draw a model as an image, a page or text.",
    "reduce": "Reduce a model to the smallest part that still fails.",
    "report": "Write a page about a model, to send to somebody.",
    "ops": "List the operations that irexec runs.",
}
"""What each command does. The module irexec.cli.NAME has the command NAME."""


class Commands(click.Group):
    """The group of all commands."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in alphabetical order."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of a name; None if there is none."""
        if cmd_name not in COMMANDS:
            return None
        found: click.Command = getattr(importlib.import_module(f"irexec.cli.{cmd_name}"), cmd_name)
        # From here on there may be something to clean up.
        raise_on_signals()
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands for --help, without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name]) for name in self.list_commands(ctx)])
