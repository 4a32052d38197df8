"""irexec bisect"""

from __future__ import annotations

import click

from irexec.cli import render
from irexec.cli.option_groups import OptionGroup, command, flag, json_option, option, settings
from irexec.cli.options import INPUTS, LIMITS, InputOptions, LimitOptions
from irexec.cli.render import as_given, progress_bar, reads_stdin, show_next_command
from irexec.cli.runtime_options import ENVIRONMENTS
from irexec.cli.values import FilePath
from irexec.errors import InputError
from irexec.tools.bisecting import Bisection, bisection_sections
from irexec.tools.bisecting import bisect as bisected
from irexec.tools.bisecting.releases import BisectOptions

_RELEASES = OptionGroup(
    "Releases",
    BisectOptions,
    {
        "openvino": option("The releases of OpenVINO, such as 2023.0..2026.4.", metavar="A..B"),
        "onnxruntime": option("The releases of ONNX Runtime, for a .onnx.", metavar="A..B"),
        "all": flag("Run every release, not only those of a binary search."),
        "environments": ENVIRONMENTS,
        "installed": flag("Only releases that the folder has: nothing is downloaded."),
    },
)
_COMPARISON = OptionGroup(
    "Comparison",
    BisectOptions,
    {
        "against": option(
            "irexec's own results, or those of the first release that runs the model.", choices=("irexec", "first")
        ),
        "rtol": option("Relative tolerance; default: as for compare.", type=float),
        "atol": option("Absolute tolerance; default: as for compare.", type=float),
    },
)


@command()
@click.argument("model", type=FilePath())
@_RELEASES("releases")
@INPUTS("inputs")
@_COMPARISON("comparison")
@LIMITS(
    "limits",
    only=("threads", "timeout"),
    threads="Number of threads of each runtime; default: the runtime's own.",
    timeout="Seconds that a release may take to load and run the model; it is refused if it takes longer.",
)
@json_option
def bisect(
    model: str,
    releases: BisectOptions,
    inputs: InputOptions,
    comparison: BisectOptions,
    limits: LimitOptions,
    as_json: bool,
) -> int:
    """Find the release of OpenVINO or ONNX Runtime with which the results of a model change.

    \b
    irexec bisect model.xml -i image.npz --openvino 2023.0..2026.4
    irexec bisect model.xml --openvino 2024.0..2025.4 --against first
    irexec bisect model.onnx --onnxruntime 1.16..1.23 --all

    Each release is installed from PyPI into an environment of its own, with a Python of PATH or of pyenv. A release
    that cannot be installed is skipped, with the reason. The exit code is 1 if any release differs from the other side
    or refuses the model.
    """
    if reads_stdin(inputs.given):
        raise InputError("bisect reads its inputs for every release, and standard input only gives them once")
    request = settings(
        BisectOptions, comparison, limits, **_RELEASES.of(releases), shapes=inputs.shapes, seed=inputs.seed
    )
    with progress_bar(f"bisecting {model}", 1.0) as advance:
        found = bisected(
            model, None, request, sources=inputs.sources, say=lambda text: advance(0, text), advance=advance
        )
    render.result(as_json, found.as_dict, bisection_sections(found))
    if not as_json:
        _after(found, request, list(as_given(inputs.given, request.shapes, request.seed)))
    return 0 if found.agrees else 1


def _after(found: Bisection, request: BisectOptions, same: list[str]) -> None:
    """Show the comparison that says more about the change."""
    if found.change is None:
        return
    differing = next(
        (run for run in (found.change.after, found.change.before) if run.comparison and not run.comparison.agrees), None
    )
    if differing is not None:
        beside = found.against.replace(" ", "==")
        sides = [] if beside == "irexec" else ["--a-runtime", beside]
        folder = [] if request.environments is None else ["--environments", request.environments]
        runtime = f"{found.package}=={differing.version}"
        show_next_command("compare", found.model, *sides, "--b-runtime", runtime, *folder, *same)
