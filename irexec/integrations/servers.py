"""HTTP and gRPC around a served model: a limit for bodies, a log, pages, and an end that loses no request.

At its end uvicorn closes idle connections at once, and connections that it has not accepted yet: a request that
arrives at that moment has no answer. Here connections stay open for a while, and each answer announces that its
connection closes.

grpc cancels calls that have not reached Python. Here calls are answered for a moment, then refused as UNAVAILABLE,
which makes clients call another server; grpc ends once calls have stopped arriving.

Sources: RFC 9112, 9.6: the last answer on a connection announces that the connection closes; grpc.io, status codes.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import socket
import time
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from functools import partial
from html import escape
from typing import Any, NoReturn
from urllib.parse import quote

from irexec.analysis.model import Port
from irexec.errors import IrexecError
from irexec.integrations.model_extensions import VERSION, Extensions
from irexec.ir.dims import shape_text
from irexec.messages import counted, cut, visible

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


_IDLE = 0.5
"""Seconds during which idle connections stay open and calls are refused."""
_ANSWERED = 0.2
"""Seconds during which calls are still answered."""
_STEP, _QUIET = 0.01, 0.1
"""Seconds between two checks for calls, and seconds without a call after which none is expected."""


class ClosingConnections:
    """ASGI middleware whose answers close their connections once ``is_ending``."""

    def __init__(self, app: Callable[[Message, Receive, Send], Awaitable[None]]) -> None:
        self._app = app
        self.is_ending = False

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        async def last(message: Message) -> None:
            if self.is_ending and message["type"] == "http.response.start":
                message = {**message, "headers": [*message.get("headers", ()), (b"connection", b"close")]}
            await send(message)

        await self._app(scope, receive, last)


def draining_server(app: Any, **options: Any) -> Any:
    """A uvicorn server that drains its connections when it ends, and leaves signals to the command.

    Args:
        app: an ASGI application.
        options: arguments of uvicorn.Config.
    """
    import uvicorn

    closing = ClosingConnections(app)

    config = uvicorn.Config(closing, **options)
    config.load()
    config.http_protocol_class = _giving_up(config.http_protocol_class)

    class Server(uvicorn.Server):  # type: ignore[misc]  # uvicorn is an extra, which mypy does not see
        @contextlib.contextmanager
        def capture_signals(self) -> Iterator[None]:
            yield

        async def shutdown(self, sockets: Any = None) -> None:
            closing.is_ending = True
            loop = asyncio.get_running_loop()
            for accepted in await stop_listening(self.servers):
                await loop.connect_accepted_socket(self._protocol, accepted)
            end = loop.time() + _IDLE
            while self.server_state.connections and loop.time() < end:
                await asyncio.sleep(0.01)
            await super().shutdown(sockets)

        def _protocol(self) -> Any:
            state = self.lifespan.state
            return self.config.http_protocol_class(config=self.config, server_state=self.server_state, app_state=state)

    return Server(config)


def _giving_up(protocol: Any) -> Any:
    """A protocol of uvicorn that closes a connection whose request has begun, and stops before its headers end.

    uvicorn itself closes connections that are idle after an answer.
    """

    class Protocol(protocol):  # type: ignore[misc]  # as above
        _timer: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._watch()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self._watch()

        def connection_lost(self, exc: Exception | None) -> None:
            super().connection_lost(exc)
            self._stop()

        def _watch(self) -> None:
            is_read = self.cycle is not None and not self.cycle.response_complete
            if is_read:
                self._stop()
            elif self._timer is None:
                self._timer = self.loop.call_later(STALLED, self.transport.close)

        def _stop(self) -> None:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

    return Protocol


async def stop_listening(servers: list[asyncio.Server]) -> list[socket.socket]:
    """Close the listening sockets. Returns connections that the system has accepted and the loop has not seen."""
    listeners = [listener.dup() for server in servers for listener in server.sockets]
    with contextlib.suppress(NotImplementedError):  # by Windows' loop
        for listener in [listener for server in servers for listener in server.sockets]:
            asyncio.get_running_loop().remove_reader(listener.fileno())
        # A socket that the loop has accepted becomes a connection of its server: the server must not close before.
        for _ in range(3):
            await asyncio.sleep(0)
    accepted = [one for listener in listeners for one in _waiting(listener)]
    for server in servers:
        server.close()
    for listener in listeners:
        listener.close()
    return accepted


def _waiting(listener: socket.socket) -> Iterator[socket.socket]:
    listener.setblocking(False)
    while True:
        try:
            yield listener.accept()[0]
        except OSError:
            return


class RefusedCalls:
    """Interceptor of the calls of a gRPC server that ends the server."""

    def __init__(self) -> None:
        from grpc import StatusCode, aio, unary_unary_rpc_method_handler

        self._is_ending, self._calls = False, 0
        calls = self

        async def refuse(request: Any, context: Any) -> None:
            await context.abort(StatusCode.UNAVAILABLE, "the server ends")

        class Interceptor(aio.ServerInterceptor):  # type: ignore[misc]  # grpc has no types
            async def intercept_service(self, continuation: Any, handler_call_details: Any) -> Any:
                calls._calls += 1
                if calls._is_ending:
                    return unary_unary_rpc_method_handler(refuse)
                return await continuation(handler_call_details)

        self.interceptor = Interceptor()

    async def end(self, server: Any, grace: float) -> None:
        """Answer calls that have arrived, refuse later ones, and stop after the last answer or ``grace`` seconds."""
        await self._calm(_ANSWERED)
        self._is_ending = True
        await self._calm(_IDLE)
        await server.stop(grace)

    async def _calm(self, longest: float) -> None:
        """Wait until calls have stopped arriving."""
        # Steps are counted, since a process that waits for a core sees no calls meanwhile.
        quiet = 0.0
        for _ in range(round(longest / _STEP)):
            seen = self._calls
            await asyncio.sleep(_STEP)
            quiet = quiet + _STEP if seen == self._calls else 0.0
            if quiet >= _QUIET:
                return


_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color-scheme:light dark}"
    "table{border-collapse:collapse}td,th{padding:.2rem 1rem .2rem 0;text-align:left;vertical-align:top}"
    "iframe{width:100%;height:70vh;border:1px solid #8888}"
)


def add_pages(app: Any, extensions: Extensions, executor: Any) -> None:
    """Add the pages to a FastAPI application. A graph is drawn on request, in ``executor``."""
    from fastapi.responses import HTMLResponse

    drawn: dict[str, str] = {}

    async def index() -> Any:
        return HTMLResponse(_index(extensions))

    async def model(model_name: str) -> Any:
        return HTMLResponse(_model(extensions, model_name))

    async def graph(model_name: str) -> Any:
        path = extensions.model(model_name).path
        if path not in drawn:
            loop = asyncio.get_running_loop()
            drawn[path] = await loop.run_in_executor(executor, partial(_graph, path))
        return HTMLResponse(drawn[path])

    for path, page in (("/", index), ("/models/{model_name}", model), ("/models/{model_name}/graph", graph)):
        app.add_api_route(path, page, methods=["GET"])


def _page(title: str, body: str) -> str:
    head = f"<meta charset=utf-8><meta name=viewport content='width=device-width'><title>{escape(title)}</title>"
    return f"<!doctype html><html lang=en>{head}<style>{_STYLE}</style><h1>{escape(title)}</h1>{body}</html>"


def _index(extensions: Extensions) -> str:
    rows = "".join(
        f"<tr><td><a href='/models/{quote(name, safe='')}'>{escape(name)}</a><td>{_ports(model.inputs)}"
        f"<td>{_ports(model.outputs)}</tr>"
        for name, model in extensions.models.items()
    )
    count = counted(len(extensions.models), "model")
    text = f"<p>irexec {escape(extensions.server)}, {count}, Open Inference Protocol (V2).</p>"
    links = (
        "<p><a href='/v2'>/v2</a> <a href='/v2/models/stats'>/v2/models/stats</a> <a href='/metrics'>/metrics</a></p>"
    )
    return _page("Models", f"{text}<table><tr><th>model<th>inputs<th>outputs</tr>{rows}</table>{links}")


def _model(extensions: Extensions, name: str) -> str:
    model = extensions.model(name)
    (figures,) = extensions.statistics(name)["model_stats"]
    address = quote(name, safe="")
    success, fail = figures["inference_stats"]["success"], figures["inference_stats"]["fail"]
    mean = f", {success['ns'] / success['count'] / 1e6:.1f} ms on average" if success["count"] else ""
    facts = (
        f"<table><tr><th>inputs<td>{_ports(model.inputs)}</tr><tr><th>outputs<td>{_ports(model.outputs)}</tr>"
        f"<tr><th>requests<td>{success['count']:,} answered{mean}, {fail['count']:,} failed</tr>"
        f"<tr><th>runs<td>{figures['execution_count']:,} of {figures['inference_count']:,} items</tr></table>"
    )
    links = "".join(
        f" <a href='/v2/models/{address}{end}'>/v2/models/{escape(name)}{end}</a>" for end in ("", "/config", "/stats")
    )
    graph = f"<iframe title='graph of {escape(name, quote=True)}' src='/models/{address}/graph'></iframe>"
    return _page(name, f"<p><a href='/'>all models</a></p>{facts}<p>{links}</p>{graph}")


def _ports(ports: list[Port]) -> str:
    return "<br>".join(
        escape(f"{port.name}: {port.element}{'[...]' if port.shape is None else shape_text(port.shape)}")
        for port in ports
    )


def _graph(path: str) -> str:
    """The page of a model's graph, as irexec graph writes it; the reason if the graph cannot be drawn."""
    from irexec.tools.graph.draw import GraphOptions, create, rendered

    try:
        drawing = create(path, [], GraphOptions(), lambda text: None)
        return rendered(drawing, "html", notify=lambda text: None).decode()
    except IrexecError as error:
        return _page("No graph", f"<p>{escape(str(error))}</p>")
