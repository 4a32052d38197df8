"""How the HTTP server ends: answers close their connections, and no connection that the system accepted is lost."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest

from irexec.integrations.servers import ClosingConnections, stop_listening


@pytest.mark.parametrize("is_ending", [False, True])
def test_answers_close_their_connections_at_the_end(is_ending: bool) -> None:
    sent: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"a", b"b")]})
        await send({"type": "http.response.body", "body": b"text"})

    async def send(message: Any) -> None:
        sent.append(message)

    closing = ClosingConnections(app)
    closing.is_ending = is_ending
    asyncio.run(closing({"type": "http"}, send, send))
    assert sent[0]["headers"] == [(b"a", b"b"), *([(b"connection", b"close")] if is_ending else [])]
    assert sent[1]["body"] == b"text"


def test_connections_of_the_last_moment_are_given() -> None:
    """Those made while the loop was busy with other things are accepted or given; those made later are refused."""
    served: list[int] = []

    async def ended() -> int:
        server = await asyncio.start_server(lambda reader, writer: served.append(1), "127.0.0.1", 0)
        address = server.sockets[0].getsockname()
        clients = [socket.create_connection(address) for _ in range(20)]
        given = await stop_listening([server])
        clients += [*given]
        await asyncio.sleep(0.05)
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(address)
        for one in clients:
            one.close()
        return len(given)

    given = asyncio.run(ended())
    assert given + len(served) == 20
