"""Servers that end without losing a request on a connection that they have accepted.

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
import socket
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

from irexec.integrations import middleware
from irexec.integrations.middleware import Message, Receive, Send

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
                self._timer = self.loop.call_later(middleware.STALLED, self.transport.close)

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
                return (
                    unary_unary_rpc_method_handler(refuse)
                    if calls._is_ending
                    else await continuation(handler_call_details)
                )

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
