"""The commands by name. A command is imported when it is called, so that the list of all of them takes no time."""

from __future__ import annotations

import gc
import importlib

import click

from irexec.cli.streams import raise_on_signals
from irexec.startup import is_command_line

GROUPS = {
    "Look": {
        "demo": "Try irexec on a small sample, which it brings along.",
        "validate": "Find everything that is wrong with a model, or with many.",
        "explain": "Explain a finding code of validate, such as IR103.",
        "inspect": "Show what a model consists of, and what would run.",
        "graph": "Draw a model as an image, a page or text.",
        "report": "Write a page about a model, to send to somebody.",
        "ops": "List the operations that irexec runs.",
    },
    "Run": {
        "infer": "Run a model on arrays, images or generated values.",
        "generate": "Continue a prompt with a language model, token by token.",
        "profile": "Show where the time of a model goes.",
        "bench": "Measure how fast a model runs.",
        "test": "Hold models to the inputs and outputs beside them.",
    },
    "Find": {
        "diff": "Show what changed between two models.",
        "compare": "Find where two models diverge, or one model in two runtimes.",
        "bisect": "Find the release of a runtime with which results change.",
        "judge": "Judge a runtime: is it wrong, or does it round as it may?",
        "inside": "Show what OpenVINO's transformations make of a model.",
        "reduce": "Reduce a model to the smallest part that still fails.",
        "conform": "Hold a runtime to random cases of every operation.",
    },
    "Make": {
        "convert": "Convert ONNX to IR, IR to ONNX, or IR for an older release.",
        "upgrade": "Write an IR of version 2 to 7 as one of version 11.",
        "edit": "Change a model step by step, and write it as IR.",
        "script": "Write a model as a Python script that makes it again.",
        "join": "Join two models: outputs of one become inputs of the other.",
        "extract": "Write layers as a model of their own, with their inputs.",
    },
    "Scale": {
        "batch": "Run a model over many images or arrays, on all cores; resumes.",
        "serve": "Answer requests to models, over HTTP and gRPC.",
    },
}
"""The commands by purpose, each with its summary. The module irexec.cli.NAME has the command NAME."""

COMMANDS = {name: summary for commands in GROUPS.values() for name, summary in commands.items()}

_ELSEWHERE = {
    "infer": "run predict exec execute",
    "validate": "check lint verify",
    "inspect": "show info summary print dump",
    "graph": "draw plot visualize visualise view",
    "bench": "benchmark benchmark_app",
    "convert": "export import to-onnx ovc mo",
    "edit": "modify quantize quantise",
    "edit --compress": "compress",
    "edit --optimize": "optimize optimise simplify",
    "extract": "cut split",
    "join": "merge",
    "judge --sensitivity": "sensitivity",
}
"""The commands, with the names that other tools, or options here, have for the same."""


class Commands(click.Group):
    """The group of all commands."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in alphabetical order."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of a name; None if there is none."""
        if cmd_name not in COMMANDS:
            return None
        # Not before: the list of commands imports none of them.
        from irexec.ir.process import collection_paused

        # Modules stay. A tenth of the time of a small command would go to searches for cycles in them, now and later.
        with collection_paused():
            # Not deep inside the imports of a command: at the end of a chunk of its stack, CPython maps memory and
            # unmaps it in each of the thousands of calls that build NumPy's types, which takes 5 ms.
            importlib.import_module("numpy")
            found: click.Command = getattr(importlib.import_module(f"irexec.cli.{cmd_name}"), cmd_name)
        if is_command_line():
            gc.freeze()
        # From here on there may be something to clean up.
        raise_on_signals()
        return found

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command of the first word; UsageError with similar names if there is none."""
        if args[0] not in COMMANDS and not args[0].startswith("-"):
            from difflib import get_close_matches

            word = args[0].lower()
            meant = [name for name, words in _ELSEWHERE.items() if word in words.split()]
            near = " or ".join(meant or get_close_matches(word, COMMANDS, 3))
            ctx.fail(f"no such command {args[0]!r}{f', did you mean {near}?' if near else ''}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands for --help, group by group, without importing them."""
        width = max(map(len, COMMANDS))
        for heading, commands in GROUPS.items():
            with formatter.section(heading):
                formatter.write_dl([(f"{name:{width}}", text) for name, text in commands.items()])
