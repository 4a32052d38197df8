"""The machine and the versions that a measurement is of."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from irexec.backend.threads import openblas

_FLAGS = {
    "avx2": "AVX2", "avx512f": "AVX-512", "avx512_vnni": "AVX-512 VNNI", "amx_tile": "AMX", "asimd": "NEON",
    "sve": "SVE",
}  # fmt: skip


def describe_machine() -> dict[str, Any]:
    """The processor's name, vector extensions, number of cores, and versions of Python and the packages."""
    fields = _cpu_fields()
    flags = fields.get("flags", fields.get("Features", "")).split()
    return {
        "cpu": fields.get("model name") or platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "flags": [title for flag, title in _FLAGS.items() if flag in flags],
        "versions": {"Python": platform.python_version(), **_versions()},
        "blas": _blas(),
    }


def _blas() -> str:
    """The BLAS of NumPy's products and the processor its kernels are for, which is not always this one: see OPENBLAS_CORETYPE."""
    library = openblas()
    return "" if library is None else f"OpenBLAS for {library.kernels}" if library.kernels else "OpenBLAS"


def _cpu_fields() -> dict[str, str]:
    """The first processor's lines of /proc/cpuinfo; empty where there is none."""
    path = Path("/proc/cpuinfo")
    text = path.read_text().split("\n\n")[0] if path.exists() else ""
    return {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in text.splitlines())}


def _versions() -> dict[str, str]:
    found = {}
    for title, package in (("NumPy", "numpy"), ("OpenVINO", "openvino"), ("ONNX Runtime", "onnxruntime")):
        try:
            found[title] = version(package)
        except PackageNotFoundError:
            continue
    return found
