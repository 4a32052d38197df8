"""Between a server and its requests: a limit for bodies, a log, and requests for a version of a model."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, NoReturn

from irexec.integrations.model_extensions import VERSION
from irexec.messages import cut, visible

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


async def _refuse(send: Send, status: int, message: str, *headers: tuple[bytes, bytes]) -> None:
    """Answer with an error as JSON."""
    body = json.dumps({"error": message}).encode()
    length = (b"content-length", str(len(body)).encode())
    start = {"type": "http.response.start", "status": status}
    await send({**start, "headers": [(b"content-type", b"application/json"), length, *headers]})
    await send({"type": "http.response.body", "body": body})


STALLED = 30.0
"""Seconds without a byte after which a request that has begun is given up."""


class LimitedBodies:
    """ASGI middleware that answers 413 to a body of more than ``limit`` bytes, with or without a declared length, and
    408 to a body that stops arriving."""

    def __init__(self, app: Callable[[Message, Receive, Send], Awaitable[None]], limit: int) -> None:
        self._app, self._limit = app, limit

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        body = _Body(receive, send, self._limit)
        length = dict(scope["headers"]).get(b"content-length", b"0")
        with contextlib.suppress(_RefusedError):
            if length.isdigit() and int(length) > self._limit:
                body.refuse_length()
            await self._app(scope, body.receive, body.send)
        if body.refusal is not None:
            await _refuse(send, *body.refusal, (b"connection", b"close"))


class _Body:
    """The body of a request, and the answer to it unless it is refused.

    Attributes:
        refusal: status and message.
    """

    def __init__(self, receive: Receive, send: Send, limit: int) -> None:
        self._receive, self._send, self._limit = receive, send, limit
        self._read, self._is_whole = 0, False
        self.refusal: tuple[int, str] | None = None

    async def receive(self) -> Message:
        try:
            # After the body, the end of the connection is waited for.
            message = await asyncio.wait_for(self._receive(), None if self._is_whole else STALLED)
        except TimeoutError:
            self._refuse(408, f"nothing of the request arrived for {STALLED:g} s")
        self._is_whole = not message.get("more_body", False)
        self._read += len(message.get("body", b""))
        if self._read > self._limit:
            self.refuse_length()
        return message

    async def send(self, message: Message) -> None:
        """Send a part of the answer: the application answers what was raised, too."""
        if self.refusal is None:
            await self._send(message)

    def refuse_length(self) -> NoReturn:
        self._refuse(413, f"the request has more than {self._limit} bytes")

    def _refuse(self, status: int, message: str) -> NoReturn:
        self.refusal = status, message
        raise _RefusedError


class _RefusedError(Exception):
    """The body is refused."""


Log = Callable[[str], None]
_VERSIONED = re.compile(r"(/v2/models/[^/]+)/versions/([^/]+)")
_LONGEST = 300


def entry(protocol: str, what: str, status: object, seconds: float) -> str:
    """The line of a request: time of its end, protocol, method and path, status, milliseconds."""
    now = time.strftime("%Y-%m-%dT%H:%M:%S%z")
    return f"{now} {protocol} {visible(cut(what, _LONGEST))} {status} {seconds * 1e3:.1f} ms"


class LoggedRequests:
    """ASGI middleware that logs requests, and removes the only version of a model from their paths.

    Args:
        app: the application.
        log: receives a line for each request; None logs none.
    """

    def __init__(self, app: Callable[[Message, Receive, Send], Awaitable[None]], log: Log | None) -> None:
        self._app, self._log = app, log

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start, status = time.perf_counter(), 500

        async def watched(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        asked = f"{scope['method']} {scope['path']}"
        try:
            await self._answer(scope, receive, watched)
        finally:
            if self._log is not None:
                self._log(entry("http", asked, status, time.perf_counter() - start))

    async def _answer(self, scope: Message, receive: Receive, send: Send) -> None:
        found = _VERSIONED.match(scope["path"])
        if found is None:
            await self._app(scope, receive, send)
        elif found[2] == VERSION:
            path = found[1] + scope["path"][found.end() :]
            await self._app({**scope, "path": path, "raw_path": path.encode()}, receive, send)
        else:
            await _refuse(send, 404, f"there is no version {found[2]!r}, only {VERSION!r}")


def logging_interceptor(log: Log) -> Any:
    """An interceptor of a gRPC server that logs calls, with their status."""
    from grpc import aio, unary_unary_rpc_method_handler

    class Interceptor(aio.ServerInterceptor):  # type: ignore[misc]  # grpc has no types
        async def intercept_service(self, continuation: Any, handler_call_details: Any) -> Any:
            handler = await continuation(handler_call_details)
            if handler is None or handler.unary_unary is None:
                return handler

            async def logged(request: Any, context: Any) -> Any:
                start, status = time.perf_counter(), "OK"
                name = handler_call_details.method.rpartition("/")[2]
                model = getattr(request, "model_name", "") or getattr(request, "name", "")
                try:
                    return await handler.unary_unary(request, context)
                except BaseException:
                    status = getattr(context.code(), "name", None) or "UNKNOWN"
                    raise
                finally:
                    log(entry("grpc", f"{name} {model}".strip(), status, time.perf_counter() - start))

            return unary_unary_rpc_method_handler(logged, handler.request_deserializer, handler.response_serializer)

    return Interceptor()
