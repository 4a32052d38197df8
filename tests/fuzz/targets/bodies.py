"""Bodies of requests over HTTP and gRPC: each has an answer that is not an error of the server's own."""

from __future__ import annotations

import asyncio
import functools
import json
import random
import struct
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import irexec
from irexec import opset
from tests.fuzz import mutate_bytes
from tests.fuzz.case import Case
from tests.fuzz.findings import Observer
from tests.fuzz.shrink import smaller_bytes, smaller_files

QUICK = 500
_X: dict[str, Any] = {"name": "x", "shape": [1, 3], "datatype": "FP32", "data": [1, 2, 3]}
_S: dict[str, Any] = {"name": "s", "shape": [2], "datatype": "BYTES", "data": ["a", "é"]}
_ODD: list[Any] = [None, True, False, 0, 1, -1, 1.5, 1e308, 10**30, "", "x", "\ud800", "\0", [], {}, [[]], [1, [2]], {"a": 1}, "FP32", "BYTES", "INT64", [0], [1 << 31], [-1, 3]]  # fmt: skip
_PATHS = ("/v2/models/twice/infer", "/v2/models/texts/infer", "/v2/models/none/infer", "/v2/repository/index", "/v2/repository/models/twice/load")  # fmt: skip


class _Aborted(Exception):
    """A call of gRPC ended with a status."""


class _Context:
    """The context of a call of gRPC."""

    def invocation_metadata(self) -> tuple[()]:
        return ()

    async def abort(self, code: Any, details: str) -> None:
        raise _Aborted(code.name, details)


class _Served:
    """The application of HTTP and the servicer of gRPC, with a loop, which opens sockets, of its own."""

    def __init__(self) -> None:
        from irexec.integrations import open_inference as server
        from irexec.tools.batch.predictor import PredictorOptions
        from irexec.tools.serving import ServedModel

        server.load_kserve()
        # The folder of a case, which none has yet.
        Path(tempfile.gettempdir()).mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory() as folder:
            x, s = opset.parameter([-1, 3], "f32", "x"), opset.parameter([-1], "string", "s")
            irexec.Model([opset.multiply(x, np.float32(2))], [x]).save(Path(folder) / "twice.xml")
            irexec.Model([s], [s]).save(Path(folder) / "texts.xml")
            models = [ServedModel(name, f"{folder}/{name}.xml", PredictorOptions(), 5) for name in ("twice", "texts")]
        options = server.ServeOptions(max_delay=0.0, max_batch=1, max_request=1 << 20)
        made = server._Server(models, options)
        plane = server._dataplane_class()(made._registry)
        self.app = server._http_server(plane, options, made.extensions, made._executor).config.app
        self.servicer, self.interceptor = server._servicer(plane, made.extensions), server._status_interceptor()
        self.loop = asyncio.new_event_loop()

    def http(self, path: str, headers: list[tuple[bytes, bytes]], body: bytes) -> tuple[int, bytes]:
        """Status and body of the answer."""
        scope = {"type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "POST", "path": path, "raw_path": path.encode(), "query_string": b"", "root_path": "", "scheme": "http", "headers": headers, "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 2)}  # fmt: skip
        sent: list[Any] = []
        waiting = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive() -> Any:
            return waiting.pop() if waiting else {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            sent.append(message)

        self.loop.run_until_complete(self.app(scope, receive, send))
        return sent[0]["status"], b"".join(message.get("body", b"") for message in sent[1:])

    def grpc(self, call: str, request: Any) -> str:
        """The name of the status."""
        return self.loop.run_until_complete(self._call(call, request))

    async def _call(self, call: str, request: Any) -> str:
        context = _Context()
        try:
            try:
                await getattr(self.servicer, call)(request, context)
            except _Aborted:
                raise
            except Exception as error:
                await self.interceptor.handle_exception(error, request, context, call)
        except _Aborted as ended:
            return str(ended.args[0])
        return "OK"


@functools.cache
def _served() -> _Served:
    return _Served()


_HAS_SERVER = find_spec("kserve") is not None
if _HAS_SERVER:
    # Not in a case: it makes files and sockets.
    _served()


def _changed(value: Any, rng: random.Random) -> Any:
    """A JSON value with one of its parts replaced, left out or repeated."""
    if rng.random() < 0.2 or not isinstance(value, list | dict) or not value:
        return rng.choice(_ODD)
    keys = list(value) if isinstance(value, dict) else list(range(len(value)))
    key, copy = rng.choice(keys), value.copy()
    if rng.random() < 0.1:
        del copy[key]
    elif rng.random() < 0.1 and isinstance(copy, list):
        copy.append(copy[key])
    else:
        copy[key] = _changed(copy[key], rng)
    return copy


def generate(rng: random.Random, number: int) -> Case:
    """A request whose JSON, bytes, headers or message is changed."""
    if rng.random() < 0.3 and _HAS_SERVER:
        from kserve.protocol.grpc import grpc_predict_v2_pb2 as messages

        x = messages.ModelInferRequest.InferInputTensor(name="x", datatype="FP32", shape=[1, 3])
        sent = messages.ModelInferRequest(model_name="twice", inputs=[x], raw_input_contents=[bytes(12)])
        if rng.random() < 0.5:
            x.contents.fp32_contents.extend([1, 2, 3])
            sent = messages.ModelInferRequest(model_name="twice", inputs=[x], id="a")
        return Case("bodies", {"body": mutate_bytes.mutate(sent.SerializeToString(), rng)}, {"grpc": True, "path": "", "length": ""})  # fmt: skip
    tensor: dict[str, Any] = rng.choice([_X, _S])
    request: Any = {"inputs": [tensor], "id": "1", "parameters": {}, "outputs": [{"name": "Multiply:0", "parameters": {"binary_data": True}}]}  # fmt: skip
    raw = b""
    if rng.random() < 0.4:
        raw = struct.pack("<3f", 1, 2, 3) if tensor is _X else b"\1\0\0\0a\2\0\0\0\xc3\xa9"
        request["inputs"] = [{**{k: v for k, v in tensor.items() if k != "data"}, "parameters": {"binary_data_size": len(raw)}}]  # fmt: skip
    if rng.random() < 0.7:
        del request["outputs"]
    for _ in range(rng.randrange(4)):
        request = _changed(request, rng)
    head = json.dumps(request).encode()
    length = rng.choice([str(len(head)), str(len(head)), "", "0", "-1", "x", "²", str(len(head) + 5)]) if raw else ""
    body = head + raw
    if rng.random() < 0.3:
        body = mutate_bytes.mutate(body, rng)
    return Case("bodies", {"body": body}, {"grpc": False, "path": rng.choice([*_PATHS[:2]] * 5 + [*_PATHS]), "length": length})  # fmt: skip


def run(case: Case, observer: Observer) -> None:
    """Send it to the application."""
    body = case.files.get("body", b"")
    if not _HAS_SERVER:
        return
    if not case.arguments["grpc"]:
        length = case.arguments["length"].encode("latin-1", "replace")
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        headers += [(b"inference-header-content-length", length)] if length else []
        answer = observer.step("http", lambda: _served().http(case.arguments["path"], headers, body), allowed=())
        if answer is not None and answer[0] not in (200, 400, 404, 501):
            observer.found("contradiction", str(answer[0]), "http", repr(answer[1]))
        return
    from google.protobuf.message import DecodeError
    from kserve.protocol.grpc import grpc_predict_v2_pb2 as messages

    request = observer.step("decode", lambda: messages.ModelInferRequest.FromString(body), allowed=(DecodeError,))
    if request is not None:
        status = observer.step("grpc", lambda: _served().grpc("ModelInfer", request), allowed=())
        if status not in ("OK", "INVALID_ARGUMENT", "NOT_FOUND", None):
            observer.found("contradiction", status, "grpc", str(request))


def smaller(case: Case) -> Iterator[Case]:
    """Fewer bytes."""
    yield from smaller_files(case, lambda name, data: smaller_bytes(data))
