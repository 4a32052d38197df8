"""Between a server and its requests: a limit for bodies, a log, and requests for a version of a model."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

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


class LimitedBodies:
    """ASGI middleware that answers 413 to a body of more than ``limit`` bytes, with or without a declared length."""

    def __init__(self, app: Callable[[Message, Receive, Send], Awaitable[None]], limit: int) -> None:
        self._app, self._limit = app, limit

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        length = dict(scope["headers"]).get(b"content-length", b"0")
        if length.isdigit() and int(length) > self._limit:
            await self._refuse(send)
            return
        try:
            await self._app(scope, self._counted(receive), send)
        except _TooLongError:
            await self._refuse(send)

    def _counted(self, receive: Receive) -> Receive:
        read = 0

        async def counted() -> Message:
            nonlocal read
            message = await receive()
            read += len(message.get("body", b""))
            if read > self._limit:
                raise _TooLongError
            return message

        return counted

    async def _refuse(self, send: Send) -> None:
        await _refuse(send, 413, f"the request has more than {self._limit} bytes", (b"connection", b"close"))


class _TooLongError(Exception):
    """The body is longer than allowed."""


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
