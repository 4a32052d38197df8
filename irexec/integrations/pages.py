"""Pages of a server: a list of models; ports, figures and graph of each model."""

from __future__ import annotations

import asyncio
from functools import partial
from html import escape
from typing import Any
from urllib.parse import quote

from irexec.analysis.model import Port
from irexec.errors import IrexecError
from irexec.integrations.model_extensions import Extensions
from irexec.ir.dims import shape_text
from irexec.messages import counted

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
    from irexec.tools.graph.draw import GraphOptions, create
    from irexec.tools.graph.files import rendered

    try:
        drawing = create(path, [], GraphOptions(), lambda text: None)
        return rendered(drawing, "html", notify=lambda text: None).decode()
    except IrexecError as error:
        return _page("No graph", f"<p>{escape(str(error))}</p>")
