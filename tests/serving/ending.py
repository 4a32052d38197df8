"""SIGTERM while the server has requests: each has an answer or was not accepted."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import Any

import tritonclient.grpc
import tritonclient.http

from tests.serving.server import Server, asked, at_once, inputs

_CLIENTS = 64
_PROTOCOLS = {"HTTP": tritonclient.http, "gRPC": tritonclient.grpc}
# What clients hear of a request that was not accepted.
_REFUSED = ("refused", "the server ends")


def _connection(protocol: str, server: Server) -> Any:
    if protocol == "HTTP":
        return tritonclient.http.InferenceServerClient(server.http, network_timeout=60.0)
    return tritonclient.grpc.InferenceServerClient(server.grpc)


def under_load(paths: Mapping[str, str]) -> int:
    """Many clients ask one request after the other, half of them each time over a new connection; returns the problems."""
    return sum(_under_load(protocol, paths) for protocol in _PROTOCOLS)


def _under_load(protocol: str, paths: Mapping[str, str]) -> int:
    lost: list[str] = []
    answered = [0]
    with Server(paths) as server:

        def client(seed: int) -> None:
            connection, given = _connection(protocol, server), inputs("transformer", seed)
            while True:
                try:
                    asked(_PROTOCOLS[protocol], connection, "transformer", given)
                    answered[0] += 1
                    connection = _connection(protocol, server) if seed % 2 else connection
                except Exception as error:
                    if not any(text in str(error).lower() for text in _REFUSED):
                        lost.append(f"{type(error).__name__}: {error}")
                    return

        ends: list[tuple[int, str]] = []
        stopper = threading.Timer(3, lambda: ends.append(server.end()))
        stopper.start()
        at_once(_CLIENTS, client)
        stopper.join()
    code, err = ends[0]
    kinds = f" ({', '.join(sorted(set(lost))[:3])})" if lost else ""
    print(
        f"SIGTERM under load, {protocol}: {answered[0]} answered, {len(lost)} lost{kinds}, exit code {code} {err[-500:]}"
    )
    return len(lost) + (code != 0) + bool(err)


def during_a_long_run(paths: Mapping[str, str]) -> int:
    """A request over each protocol that takes seconds, and SIGTERM meanwhile; returns the problems."""
    lost: list[str] = []
    with Server(paths, ["--threads", "1"]) as server:

        def client(i: int) -> None:
            protocol = [*_PROTOCOLS][i]
            try:
                asked(_PROTOCOLS[protocol], _connection(protocol, server), "slow", inputs("slow", 0))
            except Exception as error:
                lost.append(f"{protocol}: {error}")

        asking = threading.Thread(target=at_once, args=(len(_PROTOCOLS), client))
        asking.start()
        time.sleep(1)
        began = time.monotonic()
        code, err = server.end()
        seconds = time.monotonic() - began
        asking.join()
    print(
        f"SIGTERM during a long run: {len(lost)} lost {lost or ''}, ended after {seconds:.1f} s, exit code {code} {err[-500:]}"
    )
    return len(lost) + (code != 0) + bool(err)
