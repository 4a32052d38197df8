"""The names of runtimes."""

from __future__ import annotations

from irexec.errors import InputError
from irexec.tools.engines.releases.environments import PACKAGES, Release

RUNTIMES = ("irexec", "reference", "openvino", "onnxruntime", "onnx")
"""Names of the runtimes; "reference" is irexec with reference kernels, "onnx" the evaluator of the package onnx.

After "openvino" and "onnxruntime" a release may follow, such as openvino==2024.1.0, and after "openvino:" a device,
such as GPU. "command:" with a command after it is a runtime too, see irexec.tools.engines.runtimes.command.
"""

_WITH_COLON = ("openvino", "command")


def runtime_kind(name: str) -> str:
    """The part of the name of a runtime before its release and its colon, or the name itself.

    Raises:
        InputError: there is no runtime of that name.
    """
    engine, colon, rest = name.partition(":")
    kind, equals, version = engine.partition("==")
    is_known = kind in (_WITH_COLON if colon else RUNTIMES) and not (colon and not rest.strip())
    if not is_known or (equals and (kind not in PACKAGES or not all(map(str.isdigit, version.split("."))))):
        raise InputError(
            f"there is no runtime {name!r}, expected one of {', '.join(RUNTIMES)}, openvino:DEVICE, openvino==RELEASE, "
            "onnxruntime==RELEASE or command:COMMAND"
        )
    return kind


def default_functions(name: str) -> str:
    """The name in irexec.bounds.FUNCTIONS that a runtime is held to: CPUs round divisions and roots correctly."""
    kind, device = runtime_kind(name), name.partition(":")[2]
    return "ieee" if kind in RUNTIMES and device in ("", "CPU") else "opencl"


def release_of(name: str) -> Release | None:
    """The release that the name of a runtime has, such as openvino==2024.1.0; None for what is installed here."""
    kind, equals, version = name.partition(":")[0].partition("==")
    return Release(kind, version) if equals and kind in PACKAGES else None
