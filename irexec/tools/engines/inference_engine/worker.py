"""Inference Engine of 2020 behind standard input: a program for Python 3.7, which needs NumPy and nothing of irexec.

The argument is the folder of the libraries, which LD_LIBRARY_PATH must name. Each line of the input is a job as JSON:
``model`` and ``weights`` (paths), ``inputs`` (a .npz with arrays CALL/NAME: the network runs once for each number CALL,
and keeps its states) and ``outputs`` (the .npz to write, with names of the same form). Each line of the output is the
answer: ``{}``, or ``error`` and ``message``. The C interface does not pass on why a function failed.
Source: ie_c_api.h of OpenVINO 2020.4.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
from typing import Any

import numpy as np

# precision_e
PRECISIONS: dict[int, Any] = {
    10: np.float32, 11: np.float16, 30: np.int16, 40: np.uint8, 50: np.int8, 60: np.uint16, 70: np.int32,
    72: np.int64, 73: np.uint64,
}  # fmt: skip
CODES = {np.dtype(kind): code for code, kind in PRECISIONS.items()}
STEPS = {
    "ie_core_read_network": "it refuses to read the network",
    "ie_core_load_network": "its CPU plugin refuses the network",
    "ie_infer_request_infer": "the run failed",
}


class Dimensions(ctypes.Structure):
    """dimensions_t"""

    _fields_ = [("ranks", ctypes.c_size_t), ("dims", ctypes.c_size_t * 8)]


class Config(ctypes.Structure):
    """ie_config_t"""

    _fields_ = [("name", ctypes.c_char_p), ("value", ctypes.c_char_p), ("next", ctypes.c_void_p)]


class Refused(Exception):
    """A function of the library failed; its name is the argument."""


class Engine:
    """The library."""

    def __init__(self, folder: str) -> None:
        self.library = ctypes.CDLL(os.path.join(folder, "libinference_engine_c_api.so"))
        self.core = self.made("ie_core_create", b"")

    def call(self, function: str, *arguments: Any) -> None:
        """Call a function; raises Refused unless it succeeds."""
        if getattr(self.library, function)(*arguments) != 0:
            raise Refused(function)

    def made(self, function: str, *arguments: Any) -> ctypes.c_void_p:
        """The object that a function makes: its last argument is where it stores the pointer."""
        pointer = ctypes.c_void_p()
        self.call(function, *arguments, ctypes.byref(pointer))
        return pointer

    def names(self, network: ctypes.c_void_p, kind: str) -> list[bytes]:
        """The names of the inputs or outputs."""
        count = ctypes.c_size_t()
        self.call(f"ie_network_get_{kind}s_number", network, ctypes.byref(count))
        found: list[bytes] = []
        for i in range(count.value):
            name = ctypes.c_char_p()
            self.call(f"ie_network_get_{kind}_name", network, ctypes.c_size_t(i), ctypes.byref(name))
            found.append(name.value or b"")
        return found

    def run(self, job: dict[str, str]) -> None:
        """Run a job, and write its results."""
        with np.load(job["inputs"]) as file:
            inputs = {name: file[name] for name in file.files}
        network = self.made("ie_core_read_network", self.core, job["model"].encode(), job["weights"].encode())
        try:
            results = self.results(network, inputs)
        finally:
            self.library.ie_network_free(ctypes.byref(network))
        with open(job["outputs"], "wb") as file:
            np.savez(file, **results)

    def results(self, network: ctypes.c_void_p, inputs: dict[str, np.ndarray]) -> dict[str, Any]:
        """The outputs of every call, by CALL/NAME."""
        calls = sorted({int(name.split("/", 1)[0]) for name in inputs}) or [0]
        names = self.names(network, "input")
        for name in names:
            kind = inputs[f"{calls[0]}/{name.decode()}"].dtype
            self.call("ie_network_set_input_precision", network, name, CODES[kind])
        config = Config(b"CPU_THREADS_NUM", b"1", None)
        loaded = self.made("ie_core_load_network", self.core, network, b"CPU", ctypes.byref(config))
        request = self.made("ie_exec_network_create_infer_request", loaded)
        found = {}
        for call in calls:
            for name in names:
                self.array(request, name)[...] = inputs[f"{call}/{name.decode()}"]
            self.call("ie_infer_request_infer", request)
            for name in self.names(network, "output"):
                found[f"{call}/{name.decode()}"] = self.array(request, name).copy()
        self.library.ie_infer_request_free(ctypes.byref(request))
        self.library.ie_exec_network_free(ctypes.byref(loaded))
        return found

    def array(self, request: ctypes.c_void_p, name: bytes) -> np.ndarray:
        """The memory of an input or output."""
        blob = self.made("ie_infer_request_get_blob", request, name)
        shape, kind, buffer, size = Dimensions(), ctypes.c_int(), ctypes.c_void_p(), ctypes.c_int()
        self.call("ie_blob_get_dims", blob, ctypes.byref(shape))
        self.call("ie_blob_get_precision", blob, ctypes.byref(kind))
        self.call("ie_blob_get_buffer", blob, ctypes.byref(buffer))
        self.call("ie_blob_byte_size", blob, ctypes.byref(size))
        data = (ctypes.c_uint8 * size.value).from_address(buffer.value or 0)
        return np.frombuffer(memoryview(data), PRECISIONS[kind.value]).reshape(tuple(shape.dims[: shape.ranks]))


def main() -> None:
    """Answer the jobs of standard input."""
    # Libraries may print; the answers have a file descriptor of their own.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    engine = Engine(sys.argv[1])
    for line in sys.stdin:
        answer: dict[str, str] = {}
        try:
            engine.run(json.loads(line))
        except Refused as error:
            answer = {"error": "EngineError", "message": STEPS.get(str(error), f"{error} failed")}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
