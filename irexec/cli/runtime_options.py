"""The runtimes of a command, and the properties of OpenVINO's plugins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from irexec.cli.option_groups import Option, option
from irexec.cli.values import FilePath, Parsed
from irexec.tools.engines.runtimes import RUNTIMES, runtime_kind


def _runtime(text: str) -> str:
    runtime_kind(text)
    return "openvino" if text == "openvino:CPU" else text


RUNTIME = Parsed("runtime", _runtime)
"""A name of a runtime."""
RUNTIME_NAMES = f"{', '.join(RUNTIMES)}, openvino:DEVICE (such as GPU), openvino==RELEASE or command:COMMAND"


def _property(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise ValueError(f"{text!r} is not a property, expected PROPERTY=VALUE")
    return name, value


def _as_mapping(ctx: click.Context, parameter: click.Parameter, given: Sequence[tuple[str, str]]) -> Any:
    return dict(given) or None


PROPERTIES: Option = option(
    "-p",
    "--property",
    "Of OpenVINO's plugin, such as INFERENCE_PRECISION_HINT=f16; may be repeated.",
    multiple=True,
    type=Parsed("property", _property),
    callback=_as_mapping,
    metavar="PROPERTY=VALUE",
)
"""``-p``, of which the command gets a mapping, or None."""

ENVIRONMENTS = option(
    "--environments",
    "The folder of the releases; default: IREXEC_RELEASES, or irexec-releases in ~/.cache.",
    type=FilePath(),
    metavar="DIR",
)

ARITHMETIC_NAMES = ("f64", "f32", "tf32", "f16", "f16-sums", "f16-winograd", "bf16", "bf16-sums", "bf16-f16")
FUNCTION_NAMES = ("ieee", "opencl", "cuda", "estimates")
"""Names of irexec.bounds.ARITHMETICS, which completion must not load."""
