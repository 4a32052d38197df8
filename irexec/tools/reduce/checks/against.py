"""The check against a runtime of a name."""

from __future__ import annotations

from irexec.runtime.precision import Precision
from irexec.tools.reduce.checks.check import Check
from irexec.tools.reduce.checks.onnx_file import OnnxFileCheck
from irexec.tools.reduce.checks.runtime import RuntimeCheck

RUNTIMES = ("openvino", "onnxruntime", "onnx", "reference")


def check_against(
    name: str,
    *,
    rtol: float | None = None,
    atol: float | None = None,
    precision: Precision | None = None,
    timeout: float | None = None,
) -> Check:
    """Whether irexec and a runtime part.

    Args:
        name: of RUNTIMES.
        rtol, atol: the tolerances; those of ``irexec compare`` unless given.
        precision: how irexec computes f16 and bf16; as the runtime does unless given.
        timeout: seconds that each runtime may take.

    Raises:
        UnsupportedError: the runtime is not installed.
    """
    kind = OnnxFileCheck if name in ("onnxruntime", "onnx") else RuntimeCheck
    return kind(name, rtol=rtol, atol=atol, precision=precision, timeout=timeout)
