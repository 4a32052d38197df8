"""Shape inference of the package onnx in a process of its own: some models crash its C++ code or hang it."""

from __future__ import annotations

import atexit
import json
import os
import re
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import onnx
from onnx import AttributeProto

from converters.onnx.graphs import domain_of, every_node
from irexec.errors import ConversionError, EngineError, RunTimeoutError
from irexec.io.processes import LineProcess

# onnx 1.23.2 hangs on any other character before the arrow.
_READABLE = re.compile(rb"([A-Za-z0-9, ]|\.\.\.)*")
_SECONDS = 60.0

LARGEST_MESSAGE = (1 << 31) - 1
"""Bytes of a model that protobuf passes to the C++ of the package onnx."""


def infer_shapes(model: onnx.ModelProto, *, strict: bool = False) -> onnx.ModelProto:
    """The model with the shapes that the package onnx infers.

    Args:
        model: a model without objection of onnx.checker.
        strict: check types too, and raise ConversionError for a shape that cannot be inferred.

    Raises:
        ConversionError: the package refuses the model, or the model is larger than 2 GiB.
        EngineError: the process crashed, or cannot be started.
        RunTimeoutError: the inference takes longer than a minute.
    """
    for equation in _equations(model):
        if not _READABLE.fullmatch(equation.split(b"->")[0]):
            raise ConversionError(
                f"Einsum: equation {equation.decode(errors='replace')!r} has terms of other characters than letters"
            )
    if model.ByteSize() > LARGEST_MESSAGE:
        raise ConversionError("the model is too large for the shape inference of the package onnx")
    try:
        with tempfile.TemporaryDirectory(prefix="irexec-onnx-") as name:
            return _inferred(model, Path(name), strict)
    except RunTimeoutError:
        # RunTimeoutError is an OSError too.
        raise
    except OSError as error:
        raise EngineError(f"no shapes can be inferred in a process: {error.strerror or error}", engine="onnx") from None


def _inferred(model: onnx.ModelProto, folder: Path, strict: bool) -> onnx.ModelProto:
    given, result = folder / "model.onnx", folder / "inferred.onnx"
    given.write_bytes(model.SerializeToString())
    refusal = _process.ask({"model": str(given), "result": str(result), "strict": strict})
    if refusal is not None:
        raise ConversionError(refusal)
    return onnx.load(result, load_external_data=False)


class _Process:
    """The process: started for the first request and again after it has ended; it answers one request at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: LineProcess | None = None
        self._owner = 0
        # Kept alive: a child process must not end the process of its parent.
        self._of_parent: LineProcess | None = None
        atexit.register(self.stop)

    def ask(self, request: dict[str, object]) -> str | None:
        """The refusal of the package; None if the result has been written."""
        with self._lock:
            if self._owner != os.getpid():
                self._of_parent, self._process, self._owner = self._process, None, os.getpid()
            try:
                self._process = self._process or LineProcess("converters.onnx.inference_process", name="onnx")
                self._process.ask(json.dumps(request))
                refusal: str | None = self._process.answer("the model", _SECONDS)["refusal"]
            except (EngineError, RunTimeoutError, KeyboardInterrupt):
                self.stop()
                raise
            return refusal

    def forget(self) -> None:
        """Renew the lock in the child after a fork: no thread of the child would release it."""
        self._lock = threading.Lock()

    def stop(self) -> None:
        """End the process."""
        if self._process is not None and self._owner == os.getpid():
            self._process.stop()
            self._process = None


_process = _Process()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_process.forget)


def _equations(model: onnx.ModelProto) -> Iterator[bytes]:
    """The equations of all Einsum nodes, and all attributes of functions that may become such an equation."""
    graphs = [model.graph, *model.functions]
    attributes = [attribute for graph in graphs for node in every_node(graph) for attribute in node.attribute]
    attributes += [attribute for function in model.functions for attribute in function.attribute_proto]
    if not any(node.op_type == "Einsum" and not domain_of(node) for graph in graphs for node in every_node(graph)):
        return
    names = {"equation"}
    while more := {each.ref_attr_name for each in attributes if each.name in names and each.ref_attr_name} - names:
        names |= more
    for attribute in attributes:
        if attribute.name in names and attribute.type == AttributeProto.STRING:
            yield attribute.s
