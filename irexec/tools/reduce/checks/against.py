"""The check against a runtime, another version of the model, or recorded tensors."""

from __future__ import annotations

import os
from pathlib import Path

from irexec.analysis.precision import DEFAULT_PRECISION, Precision
from irexec.api import ModelLike, as_model
from irexec.errors import InputError
from irexec.tools.reduce.checks.check import Check
from irexec.tools.reduce.checks.onnx_file import OnnxFileCheck
from irexec.tools.reduce.checks.other_model import OtherModelCheck
from irexec.tools.reduce.checks.runtime import RuntimeCheck
from irexec.tools.run.shapes import Shapes

RUNTIMES = ("openvino", "onnxruntime", "onnx", "reference")


def check_against(
    other: ModelLike,
    *,
    shapes: Shapes | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    precision: Precision | None = None,
    timeout: float | None = None,
) -> Check:
    """The check that fails if a candidate differs from a runtime, or from the right version of the model.

    Args:
        other: one of RUNTIMES; or the right version: a model, a path that read_model accepts, or the path of recorded
            tensors; see OtherModelCheck.
        shapes: shapes of inputs, for a model that cannot be read without them.
        rtol, atol: the tolerances; by default those of ``irexec compare``.
        precision: precision of f16 and bf16; by default that of the runtime.
        timeout: maximum time of each run in seconds.

    Raises:
        InputError: ``other`` is neither a runtime nor a file.
        UnsupportedError: the runtime is not installed.
    """
    if isinstance(other, str) and other in RUNTIMES:
        kind = OnnxFileCheck if other in ("onnxruntime", "onnx") else RuntimeCheck
        return kind(other, rtol=rtol, atol=atol, precision=precision, timeout=timeout)
    if not isinstance(other, str | os.PathLike):
        other = as_model(other)
    elif not Path(other).exists():
        raise InputError(f"--against {other} is neither a file or folder nor a runtime ({', '.join(RUNTIMES)})")
    return OtherModelCheck(
        other, shapes=shapes, rtol=rtol, atol=atol, precision=precision or DEFAULT_PRECISION, timeout=timeout
    )
