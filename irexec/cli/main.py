"""The command line: the group of commands, and what becomes of errors."""

from __future__ import annotations

import os
import sys
import traceback

import click

import irexec
from irexec.cli.convert import convert
from irexec.cli.infer import infer
from irexec.cli.inspect import inspect
from irexec.cli.ops import ops
from irexec.cli.render import error_line
from irexec.cli.validate import validate
from irexec.errors import ConversionError, InputError, IrexecError, UnsupportedError

FINDINGS, USAGE, INVALID, UNSUPPORTED, INTERNAL = 1, 2, 3, 4, 70


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(irexec.__version__, prog_name="irexec")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
def cli(debug: bool) -> None:
    """Read, check, run, explain and write OpenVINO IR (model.xml and model.bin).

    \b
    Exit codes:
      0   all is well
      1   validate has findings, or results differ from their reference
      2   wrong usage: options, names, shapes or types of inputs
      3   a model or data file cannot be read, or is invalid
      4   an operation, version or element type is not supported
      70  an error in irexec itself
    """


for command in (infer, validate, inspect, convert, ops):
    cli.add_command(command)


def main() -> None:
    """Run the command line and exit with its code; never a traceback without --debug."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run one command line and return its exit code."""
    debug = "--debug" in arguments
    try:
        code = cli.main(arguments, prog_name="irexec", standalone_mode=False)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.Abort:
        error_line("interrupted")
        return 130
    except click.ClickException as error:
        error.show()
        return error.exit_code if isinstance(error, click.UsageError) else INVALID
    except BrokenPipeError:
        # Whoever reads us has seen enough; the interpreter must not complain about it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except IrexecError as error:
        return _failed(str(error), exit_code(error), debug)
    except OSError as error:
        return _failed(str(error), INVALID, debug)
    except MemoryError as error:
        return _failed(f"there is not enough memory: {error}", INVALID, debug)
    except Exception as error:
        return _failed(f"an error in irexec itself: {type(error).__name__}: {error} (--debug shows where)", INTERNAL, debug)


def exit_code(error: IrexecError) -> int:
    """The exit code that says what kind of error it was."""
    if isinstance(error, InputError):
        return USAGE
    if isinstance(error, UnsupportedError) or (isinstance(error, ConversionError) and error.unsupported):
        return UNSUPPORTED
    return INVALID


def _failed(message: str, code: int, debug: bool) -> int:
    if debug:
        traceback.print_exc()
    error_line(message)
    return code
