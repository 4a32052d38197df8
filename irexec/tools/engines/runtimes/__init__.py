"""Runtimes behind one interface: irexec, its reference kernels, OpenVINO, ONNX Runtime, onnx's evaluator, a command."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from irexec.analysis.evaluate import DEFAULT_PRECISION, Precision
from irexec.api import ModelLike, as_model
from irexec.errors import InputError, UnsupportedError
from irexec.ir.writable import refuse_damage
from irexec.tools.engines.runtimes.runtime import (
    RUNTIMES,
    Arrays,
    Runtime,
    Worker,
    default_functions,
    release_of,
    runtime_kind,
)

if TYPE_CHECKING:
    from irexec.tools.engines.runtimes.caches import CacheTypes

OWN = ("irexec", "reference")
"""The runtimes of irexec itself."""

_PACKAGES = ("openvino", "onnxruntime", "onnx")

__all__ = [
    "OWN",
    "RUNTIMES",
    "Arrays",
    "Runtime",
    "Worker",
    "default_functions",
    "open_runtime",
    "precision_beside",
    "require_runtime",
    "runtime_kind",
]


def require_runtime(name: str, properties: Mapping[str, str] | None = None) -> None:
    """Raise unless a runtime can be used, and takes properties if there are any.

    The environment of a release is looked for when the runtime is opened.

    Raises:
        InputError: a runtime of that name does not exist, or has no properties.
        UnsupportedError: its package is not installed.
    """
    kind = runtime_kind(name)
    if properties and kind != "openvino":
        raise InputError(f"the runtime {kind} has no properties: they are for openvino")
    if kind in _PACKAGES and release_of(name) is None and importlib.util.find_spec(kind) is None:
        text = f"the runtime {kind} needs the package {kind} (pip install {kind}), which is not installed"
        raise UnsupportedError(text)


DYNAMIC_QUANTIZATION = "DYNAMIC_QUANTIZATION_GROUP_SIZE"
"""The property of OpenVINO's CPU plugin that irexec has as ``dynamic_quantization``."""


def precision_beside(name: str) -> Precision:
    """How irexec is to compute f16 and bf16 beside a runtime, so that both compute alike.

    OpenVINO's CPU plugin and ONNX Runtime 1.31 compute them in f32, the reference evaluator of onnx as they are
    written.
    """
    return DEFAULT_PRECISION if name in OWN else "as-written" if name == "onnx" else "f32"


def open_runtime(
    name: str,
    model: ModelLike,
    *,
    properties: Mapping[str, str] | None = None,
    threads: int | None = None,
    precision: Precision = DEFAULT_PRECISION,
    max_memory: int | None = None,
    dynamic_quantization: int | None = None,
    caches: CacheTypes | None = None,
    timeout: float | None = None,
    worker: Worker | None = None,
    environments: str | None = None,
) -> Runtime:
    """A model in a runtime; close it, or use it in a ``with``.

    Args:
        name: of RUNTIMES, with a release: openvino==2024.1.0, or with a colon: openvino:DEVICE, command:COMMAND.
        model: a model, or a source that read_model accepts; the last two run its .onnx file.
        properties: of OpenVINO's plugin, by name.
        threads: number of threads; the runtime's own default unless given.
        precision: how irexec computes f16 and bf16; see compile_model.
        max_memory: bytes that irexec may hold; see compile_model.
        dynamic_quantization: of irexec, see compile_model, and of OpenVINO, whose property it sets.
        caches: how irexec holds the keys and values in caches of attention, as OpenVINO can; as they are by default.
        timeout: seconds that a run may take; of OpenVINO and ONNX Runtime also to load the model. Not that of onnx,
            which runs in this process.
        worker: the process that OpenVINO or ONNX Runtime run in, so that many models share it; one of its own unless
            given.
        environments: the folder of the environments of releases; None for the default one.

    Raises:
        InputError: the runtime does not exist, or the model did not come from the kind of file that it runs.
        UnsupportedError: its package or release is not installed, or irexec does not run the model.
        ModelError, NodeError: the model cannot be run.
    """
    require_runtime(name, properties)
    kind = runtime_kind(name)
    model = as_model(model)
    from irexec.tools.engines.runtimes import kinds

    if name in OWN:
        return kinds.OwnRuntime(
            name, model, threads=threads, precision=precision, max_memory=max_memory,
            dynamic_quantization=dynamic_quantization, caches=caches, timeout=timeout,
        )  # fmt: skip
    if kind in ("openvino", "command"):
        # Both get a file that irexec writes; the error would be about a file that nobody asked for.
        refuse_damage(model)
    process: dict[str, Any] = {
        "threads": threads, "timeout": timeout, "worker": worker, "environments": environments
    }  # fmt: skip
    if kind == "openvino":
        if dynamic_quantization is not None:
            properties = {**(properties or {}), DYNAMIC_QUANTIZATION: str(dynamic_quantization)}
        return kinds.OpenVINORuntime(name, model, properties=properties, **process)
    if kind == "command":
        return kinds.CommandRuntime(name, model, timeout=timeout)
    return kinds.OnnxRuntime(model, name, **process) if kind == "onnxruntime" else kinds.OnnxReferenceRuntime(model)
