"""The command line: the group of commands, and the exit code of each kind of error."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import click

import irexec
from irexec.cli import streams
from irexec.cli.commands import Commands
from irexec.errors import ConversionError, ConversionWarning, InputError, IrexecError, RunTimeoutError, UnsupportedError
from irexec.messages import sentence
from irexec.startup import INTERRUPTED, is_lack_of_memory

# Names of value types: click's own, the longer ones first, and those for people.
_KINDS = {"integer range": "an integer", "integer": "an integer", "float range": "a number", "float": "a number"}
FINDINGS, USAGE, INVALID, UNSUPPORTED, INTERNAL, TIMED_OUT = 1, 2, 3, 4, 70, 124


def _show_version(ctx: click.Context, parameter: click.Parameter, given: bool) -> None:
    if given:
        # Not before: a command that computes nothing needs neither.
        import numpy as np

        from irexec.native.library import description

        click.echo(f"irexec, version {irexec.__version__}\nNumPy {np.__version__}, {description()}")
        ctx.exit()


@click.group(
    cls=Commands,
    no_args_is_help=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_show_version,
    help="Show the version of irexec, of NumPy, and which kernels compute; then exit.",
)
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
def cli(debug: bool) -> None:
    """Read, check, run, explain and write OpenVINO IR (model.xml and model.bin).

    A command that takes a model takes an .xml, of IR versions 2 to 7 too, or an .onnx, which is converted in memory.

    \b
    Exit codes:
      0   success
      1   validate has findings, or results differ from their reference
      2   wrong usage: options, names, shapes or types of inputs
      3   a model or data file cannot be read or written, or is invalid
      4   an operation, version or element type is not supported, or an
          optional package is not installed
      10 to 15  verdicts of judge
      70  an error in irexec itself
      124 the run took longer than --timeout
      130 interrupted (Ctrl-C); 129, 143 ended by SIGHUP, SIGTERM

    With --json an error is also a document on stdout: {"schema": 1, "error": {...}}.
    """


def main() -> None:
    """Run the command line and exit with its code; never a traceback without --debug."""
    # None where they were closed before the interpreter started.
    missing = [name for name in ("stdout", "stderr") if getattr(sys, name) is None]
    for name in missing:
        setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
    streams.exit_on_signals()
    try:
        code = run(sys.argv[1:])
    finally:
        streams.finish()
    streams.close()
    for name in missing:
        getattr(sys, name).close()
        setattr(sys, name, None)
    sys.exit(code)


def run(arguments: list[str]) -> int:
    """Run one command line and return its exit code; --debug may stand anywhere in it."""
    debug = "--debug" in arguments
    as_json = "--json" in arguments or "--format=json" in arguments or ("--format", "json") in pairwise(arguments)
    if "_IREXEC_COMPLETE" in os.environ:
        from irexec.cli import completion

        completion.install()
    try:
        words = [word for word in arguments if word != "--debug"]
        with _warnings_as_lines():
            code = cli.main(words or ["--help"], prog_name="irexec", standalone_mode=False)
        streams.flush()
        return code if isinstance(code, int) else 0
    except click.exceptions.Exit as done:
        return done.exit_code
    except (click.Abort, KeyboardInterrupt) as error:
        return _failed(error, "interrupted", INTERRUPTED, debug, as_json)
    except click.ClickException as error:
        return _failed(error, _usage_message(error), USAGE, debug, as_json)
    except SystemExit as error:
        if error.code == INTERRUPTED:
            return _failed(click.Abort(), "interrupted", INTERRUPTED, debug, as_json)
        # Click leaves with 1 where nobody reads its help; any other code comes from a signal.
        return 0 if error.code == 1 else int(error.code or 0)
    except IrexecError as error:
        return _failed(error, str(error), exit_code(error), debug, as_json)
    except OSError as error:
        reason = error.strerror or str(error)
        return _failed(error, f"{error.filename}: {reason}" if error.filename else reason, INVALID, debug, as_json)
    except Exception as error:
        if is_lack_of_memory(error):
            said = isinstance(error, MemoryError) and str(error)
            return _failed(error, f"there is not enough memory{f': {error}' if said else ''}", INVALID, debug, as_json)
        reason = " ".join([f"{type(error).__name__}: {error}", *getattr(error, "__notes__", ())])
        return _failed(error, f"an error in irexec itself: {reason} (--debug shows where)", INTERNAL, debug, as_json)


@contextmanager
def _warnings_as_lines() -> Iterator[None]:
    """A fault of an ONNX model is one line on stderr, and is shown once even if the model is read twice."""
    seen: set[str] = set()
    with warnings.catch_warnings():
        shown = warnings.showwarning
        warnings.simplefilter("always", ConversionWarning)

        def show(message: Warning | str, category: type[Warning], *rest: Any, **more: Any) -> None:
            if not issubclass(category, ConversionWarning):
                shown(message, category, *rest, **more)
            elif str(message) not in seen:
                from irexec.cli import render

                seen.add(str(message))
                render.warning_line(sentence(str(message)))

        warnings.showwarning = show
        yield


def exit_code(error: IrexecError) -> int:
    """The exit code that says what kind of error it was."""
    if isinstance(error, InputError):
        return USAGE
    if isinstance(error, RunTimeoutError):
        return TIMED_OUT
    if isinstance(error, UnsupportedError) or (isinstance(error, ConversionError) and error.unsupported):
        return UNSUPPORTED
    return INVALID


_OPTIONS_ELSEWHERE = {
    "--batch": "--shape", "--batch-size": "--shape", "--input-shape": "--shape", "--inputs": "--input",
    "--iterations": "--runs", "--niter": "--runs", "--nthreads": "--threads",
    "--out": "--output", "--cut-from": "--from", "--cut-to": "--to",
    "--batchsize": "--shape", "--opset-version": "--opset", "--tolerance": "--rtol", "--target": "--for",
    "--fp16": "edit --compress", "--half": "edit --compress", "--compress-to-fp16": "edit --compress",
    "--compress_to_fp16": "edit --compress", "--quantize": "edit --compress", "--simplify": "edit --optimize",
    "--device": "compare --b-runtime", "--scale": "infer --save-inputs", "--mean": "infer --save-inputs",
}  # fmt: skip
"""Options of other commands and tools, and what irexec's commands call them, where they have such an option.

After the name of a command: what only that command has.
"""


def _usage_message(error: click.ClickException) -> str:
    """The objection of click as one sentence in the style of all other errors, with the command that lists options."""
    message = " ".join(error.format_message().split()).removesuffix(".")
    for name, kind in _KINDS.items():
        message = message.replace(f" is not a valid {name}", f" is not {kind}")
    if isinstance(error, click.BadOptionUsage):
        message = f"{message[:1].lower()}{message[1:]}"
    context = getattr(error, "ctx", None)
    if isinstance(error, click.NoSuchOption):
        usual = _OPTIONS_ELSEWHERE.get(error.option_name, "")
        command, _, option = usual.rpartition(" ")
        if context is not None and any(option in parameter.opts for parameter in context.command.params):
            message = f"{error.message.removesuffix('.')}; {option} is the option for that"
        elif command:
            message = f"{error.message.removesuffix('.')}; irexec {usual} does that"
        elif error.possibilities:
            message = f"{error.message.removesuffix('.')}; similar options are {', '.join(error.possibilities)}"
    return message if context is None else f"{message[:1].lower()}{message[1:]} (see {context.command_path} --help)"


def _failed(error: BaseException, message: str, code: int, debug: bool, as_json: bool) -> int:
    # Not before, since the libraries that format take longer to import than most commands without an error need.
    from irexec.cli import render

    message = sentence(message)
    if debug:
        import traceback

        render.lines("".join(traceback.format_exception(error)).splitlines(), stderr=True)
    render.error_line(message)
    if as_json:
        kind = "UsageError" if isinstance(error, click.ClickException) else type(error).__name__
        render.error_json(kind, message, code)
    return code
