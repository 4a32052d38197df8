"""Requests that are wrong, each of which must be answered with a status of 4xx and a sentence, and must not end the server."""

from __future__ import annotations

import http.client
import json
import struct

_INFER = "/v2/models/several/infer"
_X = {"name": "x", "shape": [1, 4], "datatype": "FP32", "data": [1, 2, 3, 4]}
_RAW = {"name": "x", "shape": [1, 4], "datatype": "FP32", "parameters": {"binary_data_size": 16}}


def _body(*inputs: object, **more: object) -> bytes:
    return json.dumps({"inputs": list(inputs), **more}).encode()


def _x(**changes: object) -> bytes:
    return _body({**_X, **changes})


def _binary(tensor: dict[str, object], data: bytes, length: object = None) -> tuple[bytes, dict[str, str]]:
    head = _body(tensor)
    return head + data, {"Inference-Header-Content-Length": str(len(head) if length is None else length)}


_FLOATS = struct.pack("<4f", 1, 2, 3, 4)
CASES: list[tuple[str, str, bytes, dict[str, str]]] = [
    ("POST", _INFER, b"", {}),
    ("POST", _INFER, b"{", {}),
    ("POST", _INFER, b"[]", {}),
    ("POST", _INFER, b"null", {}),
    ("POST", _INFER, b"\xff\xfe", {}),
    ("POST", _INFER, b"{}", {}),
    ("POST", _INFER, _body(), {}),
    ("POST", _INFER, _body(1), {}),
    ("POST", _INFER, _body({}), {}),
    ("POST", _INFER, _x(name="z"), {}),
    ("POST", _INFER, _body(_X, _X), {}),
    ("POST", _INFER, _body(_X, {**_X, "name": "y"}), {}),
    ("POST", _INFER, _x(shape=[1, 5]), {}),
    ("POST", _INFER, _x(shape=[-1, 4]), {}),
    ("POST", _INFER, _x(shape=[2, 2]), {}),
    ("POST", _INFER, _x(shape="1,4"), {}),
    ("POST", _INFER, _x(shape=[1e300, 4]), {}),
    ("POST", _INFER, _x(datatype="FP99"), {}),
    ("POST", _INFER, _x(datatype="INT64"), {}),
    ("POST", _INFER, _x(datatype=7), {}),
    ("POST", _INFER, _x(data=["a", "b", "c", "d"]), {}),
    ("POST", _INFER, _x(data=[1, [2], 3, 4]), {}),
    ("POST", _INFER, _x(data={"a": 1}), {}),
    ("POST", _INFER, _x(data=None), {}),
    ("POST", _INFER, _body(_X, outputs=[{"name": "nothing"}]), {}),
    ("POST", _INFER, _body(_X, outputs=[1]), {}),
    ("POST", _INFER, *_binary(_RAW, _FLOATS[:-1])),
    ("POST", _INFER, *_binary(_RAW, b"")),
    ("POST", _INFER, *_binary(_RAW, _FLOATS, "x")),
    ("POST", _INFER, *_binary(_RAW, _FLOATS, -5)),
    ("POST", _INFER, *_binary(_RAW, _FLOATS, 10**9)),
    ("POST", _INFER, *_binary({**_RAW, "parameters": {"binary_data_size": "x"}}, _FLOATS)),
    ("POST", _INFER, *_binary({**_RAW, "parameters": {"binary_data_size": 10**12}}, _FLOATS)),
    ("POST", _INFER, b" " * (2 << 20), {}),
    ("POST", "/v2/models/none/infer", _x(), {}),
    ("GET", "/v2/models/none", b"", {}),
    ("GET", "/nothing", b"", {}),
    ("GET", _INFER, b"", {}),
    ("POST", "/v2/models/several/infer", b"{" * 100_000, {"Content-Type": "application/json"}),
    ("POST", _INFER, _x(), {"Content-Type": "application/json", "ce-specversion": "1.0"}),
]  # fmt: skip


def problems(address: str) -> list[str]:
    """What is not answered as it should be; the server takes requests of 1 MB."""
    found = []
    for method, path, body, headers in CASES:
        for kind in {"Content-Type": "application/json"}, {}:
            connection = http.client.HTTPConnection(address, timeout=30)
            try:
                connection.request(method, path, body, kind | headers)
                answer = connection.getresponse()
                text = answer.read()
            except OSError as error:
                found.append(f"{method} {path} {body[:80]!r} {headers}: {error}")
                continue
            finally:
                connection.close()
            if not 400 <= answer.status < 500 and not (b"ce-spec" in str(headers).encode() and answer.status == 200):
                found.append(f"{method} {path} {body[:80]!r} {headers}: {answer.status} {text[:200]!r}")
    return found
