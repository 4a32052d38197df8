"""The server as a process: odd requests, runs without end, requests that stop halfway, and two signals."""

from __future__ import annotations

import http.client
import json
import signal
import socket
import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("kserve")

import irexec
from irexec import opset
from tests.serving.server import Server

_T: Any = opset.extension("extension")
_SETTINGS = "from irexec.integrations import servers; servers.STALLED = 1.0"


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A model that splits by a pattern that backtracks, and one that doubles its input."""
    folder = tmp_path_factory.mktemp("models")
    text, x = opset.parameter([1], "string", "s"), opset.parameter([-1, 3], "f32", "x")
    rows = opset.constant(np.array([0], np.int32)), opset.constant(np.array([1], np.int32))
    pattern = opset.constant(np.frombuffer(b"(a+)+$", np.uint8).copy())
    split = _T.regex_split(*rows, *_T.string_tensor_unpack(text), pattern, behaviour="isolate", invert=False)
    irexec.Model(list(split), [text]).save(folder / "split.xml")
    irexec.Model([opset.multiply(x, np.float32(2))], [x]).save(folder / "twice.xml")
    return {name: str(folder / f"{name}.xml") for name in ("split", "twice")}


@pytest.fixture(scope="module")
def server(models: dict[str, str]) -> Iterator[Server]:
    with Server(models, ["--timeout", "1", "--max-batch", "1"], before=_SETTINGS) as running:
        yield running


def _ask(
    server: Server, model: str, body: bytes | dict[str, Any], timeout: float = 30, headers: Any = ()
) -> tuple[int, str]:
    connection = http.client.HTTPConnection(server.http, timeout=timeout)
    try:
        connection.request(
            "POST", f"/v2/models/{model}/infer", body if isinstance(body, bytes) else json.dumps(body), dict(headers)
        )
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def _split(text: str) -> dict[str, Any]:
    return {"inputs": [{"name": "s", "shape": [1], "datatype": "BYTES", "data": [text]}]}


_X: dict[str, Any] = {"name": "x", "shape": [1, 3], "datatype": "FP32", "data": [1, 2, 3]}
_ODD: list[Any] = [
    *({"inputs": [{**_X, "shape": shape}]} for shape in ([True, 3], [1, 3.0], [1, None], [[1, 3]], [1, "3"], [1, -3], [1, 1 << 70], {}, 3, [])),
    *({"inputs": [{**_X, "data": data}]} for data in ("abc", ["a", "b", "c"], [1, 2], [[1], [2, 3]], [1, 2, {}], [1, None, 2], [1, 2, 10**400], {"a": 1}, 1, True)),
    *({"inputs": [{**_X, "name": name}]} for name in ("y", "\ud800", "", 1, None, ["x"])),
    *({"inputs": [{**_X, "datatype": datatype}]} for datatype in ("FP33", "\udfff", "", 1, None, "BYTES", "BOOL")),
    *({"inputs": [{**_X, "parameters": parameters}]} for parameters in (1, [], "a", {"binary_data_size": True}, {"binary_data_size": 1.5})),
    *({"inputs": inputs} for inputs in (None, {}, "x", [None], [[]], [_X, _X])),
    *({"inputs": [_X], "id": id} for id in ("\ud800", 1, None, [], {})),
    *({"inputs": [_X], "outputs": outputs} for outputs in (1, {}, "y", [None], [1], [{"name": 1}], [{"name": "\ud800"}], [{"name": "y", "parameters": 1}])),
    *({"inputs": [_X], "parameters": parameters} for parameters in (1, "a", [1])),
    b"\xed\xa0\x80", b"\xff\xfe{}", b'"\\ud800"', b"[" * 100_000, b"NaN", b"", b"1" * 5000, b'{"inputs": [' + b"{}," * 10 + b"{}]}", b"\x00",
]  # fmt: skip


@pytest.mark.sampled(2)
@pytest.mark.parametrize("body", _ODD, ids=range(len(_ODD)))
def test_odd_requests_are_refused(server: Server, body: Any) -> None:
    status, text = _ask(server, "twice", body)
    assert (status, list(json.loads(text))) == (400, ["error"]) or body in [
        {"inputs": [_X], "id": None},
        {"inputs": [{**_X, "parameters": []}]},
    ]
    # The SDK reads requests that say that they are JSON, and takes true and "3" for integers.
    status, text = _ask(server, "twice", body, headers={"Content-Type": "application/json"})
    assert status in (200, 400)
    assert json.loads(text)


def test_a_run_has_a_limit_of_time(server: Server) -> None:
    status, text = _ask(server, "split", _split("a" * 41 + "!"))
    assert status == 504
    assert "the run took longer than 1 s" in json.loads(text)["error"]
    assert _ask(server, "split", _split("aab"))[0] == 200
    assert _ask(server, "twice", {"inputs": [_X]})[0] == 200


@pytest.mark.parametrize(
    "begin",
    [
        b"",
        b"POST /v2/models/twice/infer HTTP/1.1\r\nHost: a\r\n",
        b"POST /v2/models/twice/infer HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n{",
        b"POST /v2/models/twice/infer HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{",
        b"GET /v2 HTTP/1.1\r\nHost: a\r\n\r\nGET /v2 HTTP/1.1\r\n",
    ],
)
@pytest.mark.sampled(3)
def test_a_request_that_stops_halfway_is_given_up(server: Server, begin: bytes) -> None:
    host, _, port = server.http.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=30) as client:
        client.sendall(begin)
        received = b""
        while data := client.recv(65536):
            received += data
    assert (b" 408 " in received) == (b"{" in begin)


def test_a_body_of_unknown_length_has_a_limit(server: Server) -> None:
    connection = http.client.HTTPConnection(server.http, timeout=30)
    parts = iter([b" " * (1 << 20)] * 65)
    connection.request("POST", "/v2/models/twice/infer", parts, encode_chunked=True)
    answer = connection.getresponse()
    assert (answer.status, answer.read()) == (413, b'{"error": "the request has more than 67108864 bytes"}')
    connection.close()


def test_grpc_refuses_as_http_does(server: Server) -> None:
    grpc = pytest.importorskip("grpc")
    from kserve.protocol.grpc import grpc_predict_v2_pb2 as messages
    from kserve.protocol.grpc.grpc_predict_v2_pb2_grpc import GRPCInferenceServiceStub

    def request(**fields: Any) -> Any:
        tensor = messages.ModelInferRequest.InferInputTensor(name="x", datatype="FP32", shape=[1, 3])
        return messages.ModelInferRequest(inputs=[tensor], raw_input_contents=[bytes(12)], **fields)

    tensor = messages.ModelInferRequest.InferInputTensor(name="s", datatype="BYTES", shape=[1])
    raw = (42).to_bytes(4, "little") + b"a" * 41 + b"!"
    late = messages.ModelInferRequest(model_name="split", inputs=[tensor], raw_input_contents=[raw])
    with grpc.insecure_channel(server.grpc) as channel:
        stub = GRPCInferenceServiceStub(channel)
        assert stub.ModelInfer(request(model_name="twice", model_version="1")).outputs[0].name
        for call, sent, code in (
            (stub.ModelInfer, request(model_name="twice", model_version="9"), "NOT_FOUND"),
            (stub.ModelInfer, request(model_name="none"), "NOT_FOUND"),
            (stub.ModelInfer, request(), "NOT_FOUND"),
            (stub.ModelMetadata, messages.ModelMetadataRequest(name="twice", version="9"), "NOT_FOUND"),
            (stub.ModelReady, messages.ModelReadyRequest(name="twice", version="9"), "NOT_FOUND"),
            (stub.RepositoryModelLoad, messages.RepositoryModelLoadRequest(model_name="twice"), "UNIMPLEMENTED"),
            (stub.RepositoryModelUnload, messages.RepositoryModelUnloadRequest(model_name="twice"), "UNIMPLEMENTED"),
            (stub.ModelInfer, messages.ModelInferRequest(model_name="twice"), "INVALID_ARGUMENT"),
            (stub.ModelInfer, late, "DEADLINE_EXCEEDED"),
        ):
            with pytest.raises(grpc.RpcError) as caught:
                call(sent, timeout=30)
            assert caught.value.code().name == code
            assert caught.value.details()


_HOLDS_THE_LOCK = """
import re, threading
from irexec.tools.serving import ServedModel
ServedModel.run = lambda self, requests: re.search("(a+)+$", "a" * 60 + "!")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs sysv_signal")
@pytest.mark.slow
def test_two_signals_end_the_server_whatever_it_computes(models: dict[str, str]) -> None:
    with Server(models, before=_HOLDS_THE_LOCK) as server:
        with pytest.raises(TimeoutError):
            _ask(server, "twice", {"inputs": [_X]}, timeout=1)
        for _ in range(2):
            server.process.send_signal(signal.SIGTERM)
            time.sleep(0.2)
        assert server.process.wait(10) == -signal.SIGTERM
