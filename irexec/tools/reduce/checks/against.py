"""The check against a runtime, another version of the model, or recorded tensors."""

from __future__ import annotations

from pathlib import Path

from irexec.analysis.model import Model
from irexec.errors import InputError
from irexec.runtime.precision import DEFAULT_PRECISION, Precision
from irexec.tools.reduce.checks.check import Check
from irexec.tools.reduce.checks.onnx_file import OnnxFileCheck
from irexec.tools.reduce.checks.other_model import OtherModelCheck
from irexec.tools.reduce.checks.runtime import RuntimeCheck
from irexec.tools.run.shapes import Shapes

RUNTIMES = ("openvino", "onnxruntime", "onnx", "reference")


def check_against(
    other: str | Path | Model,
    *,
    shapes: Shapes | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    precision: Precision | None = None,
    timeout: float | None = None,
) -> Check:
    """Whether irexec and a runtime part, or the model and what is right.

    Args:
        other: of RUNTIMES; or what is right: a model, its path, or that of recorded tensors, see OtherModelCheck.
        shapes: of inputs of a model that cannot be read without them.
        rtol, atol: the tolerances; those of ``irexec compare`` unless given.
        precision: how irexec computes f16 and bf16; as the runtime does unless given.
        timeout: seconds that each run may take.

    Raises:
        InputError: it is neither a runtime nor a file.
        UnsupportedError: the runtime is not installed.
    """
    if isinstance(other, str) and other in RUNTIMES:
        kind = OnnxFileCheck if other in ("onnxruntime", "onnx") else RuntimeCheck
        return kind(other, rtol=rtol, atol=atol, precision=precision, timeout=timeout)
    if not isinstance(other, Model) and not Path(other).exists():
        raise InputError(f"--against {other} is neither a file or folder nor a runtime ({', '.join(RUNTIMES)})")
    return OtherModelCheck(
        other, shapes=shapes, rtol=rtol, atol=atol, precision=precision or DEFAULT_PRECISION, timeout=timeout
    )
