"""Models behind the Open Inference Protocol (KServe V2), over HTTP and gRPC, by the kserve SDK.

The SDK implements the protocol: it parses and writes requests as JSON, with binary tensors, and as protocol buffers.
The servers, uvicorn and grpc, are started here: the SDK would listen on all addresses of the machine, and add endpoints
of other protocols.

Why kserve: its maintainers also maintain the protocol, and it is the reference implementation. MLServer has batching of
its own, but does not run on Python 3.13; Triton and OpenVINO Model Server do not run Python models on NumPy.

Source: https://github.com/kserve/open-inference-protocol
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import functools
import logging
import math
import signal
import sys
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from types import FrameType
from typing import Any

import numpy as np

from irexec.analysis.model import Port
from irexec.errors import InputError, IrexecError, ModelError, RunTimeoutError
from irexec.integrations.model_extensions import (
    EXTENSIONS,
    PLATFORM,
    VERSION,
    Extensions,
    UnknownModelError,
    grpc_handler,
    http_routes,
)
from irexec.integrations.servers import (
    LimitedBodies,
    LoggedRequests,
    RefusedCalls,
    add_pages,
    draining_server,
    logging_interceptor,
)
from irexec.integrations.tensors import array_of, datatype_of, infer_request, is_text, not_importable, sizes_of
from irexec.messages import cut
from irexec.tools.serving import Batcher, ModelStatistics, ServedModel, TooManyRequestsError

Ran = Callable[[int, int, float], None]
"""Receives the requests, items and seconds of each run."""

# Without so_reuseport two servers can listen on one port, and share its requests.
# A peer that is gone in the middle of a message answers no ping.
_GRPC_OPTIONS = (
    ("grpc.so_reuseport", 0),
    ("grpc.server_handshake_timeout_ms", 30_000),
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 10_000),
)

_GRACE = 30
"""Seconds that requests under way have to be answered when the server ends."""


@dataclass(frozen=True, kw_only=True)
class ServeOptions:
    """Addresses and limits of a server.

    Attributes:
        host: the address to listen on.
        port, grpc_port: ports for HTTP and gRPC; 0 is any free port, and None means without gRPC.
        max_batch, max_delay: see Batcher.
        jobs: maximum number of simultaneous runs.
        max_request: maximum bytes of a request.
        log: receives a line for each request; None logs none.
        version: the version of irexec, for the metadata of the server.
    """

    host: str = "127.0.0.1"
    port: int = 8080
    grpc_port: int | None = 8081
    max_batch: int = 32
    max_delay: float = 0.005
    jobs: int = 1
    max_request: int = 64 << 20
    log: Callable[[str], None] | None = None
    version: str = ""


def load_kserve() -> Any:
    """The kserve SDK; raises UnsupportedError if it is not installed."""
    # The SDK parses the arguments of the program that imports it, and ends the program if it does not know them.
    arguments, sys.argv = sys.argv, sys.argv[:1]
    try:
        import fastapi
        import grpc
        import kserve
        import prometheus_client
        import uvicorn
    except ImportError as error:
        raise not_importable("kserve", "serve", error) from None
    finally:
        sys.argv = arguments
    del fastapi, grpc, prometheus_client, uvicorn
    logging.getLogger("kserve").setLevel(logging.CRITICAL)
    return kserve


def serve(models: Sequence[ServedModel], options: ServeOptions, started: Callable[[str, str | None], None]) -> None:
    """Answer requests until SIGINT or SIGTERM; requests under way are answered before the return.

    Args:
        models: the models by name.
        options: addresses and limits.
        started: called with the addresses of both protocols once the servers listen.

    Raises:
        UnsupportedError: kserve is not installed.
        ModelError: a server cannot listen on an address.
    """
    load_kserve()
    asyncio.run(_Server(models, options).run(started))


class _Server:
    """The servers of both protocols and the models behind them."""

    def __init__(self, models: Sequence[ServedModel], options: ServeOptions) -> None:
        from kserve import ModelRepository

        self._options, self._registry = options, ModelRepository()
        self._executor = ThreadPoolExecutor(options.jobs, "irexec-run")
        self._slots = asyncio.Semaphore(options.jobs)
        self._metrics = _metrics()
        statistics = {model.name: ModelStatistics() for model in models}
        self.extensions = Extensions(models, statistics, options.max_batch, options.version)
        for model in models:
            ran = _both(self._metrics.of(model.name), statistics[model.name].ran)
            batcher = Batcher(
                model, self._executor, self._slots, max_batch=options.max_batch, max_delay=options.max_delay, ran=ran
            )
            self._registry.update(_model_class()(model, batcher, statistics[model.name]))

    async def run(self, started: Callable[[str, str | None], None]) -> None:
        """Listen until a signal comes."""
        dataplane = _dataplane_class(self._options.version)(self._registry)
        http = _http_server(dataplane, self._options, self.extensions, self._executor)
        refused = RefusedCalls()
        grpc, grpc_port = await _grpc_server(dataplane, self._options, self.extensions, refused.interceptor)
        stop = asyncio.Event()
        with _on_signals(stop):
            serving = asyncio.create_task(_served(http))
            try:
                while not http.started and not serving.done():
                    await asyncio.sleep(0.01)
                if serving.done():
                    raise ModelError(f"{self._options.host}:{self._options.port} cannot be listened on: is it in use?")
                port = http.servers[0].sockets[0].getsockname()[1]
                host = self._options.host
                started(f"http://{host}:{port}", None if grpc_port is None else f"grpc://{host}:{grpc_port}")
                await stop.wait()
            finally:
                http.should_exit = True
                ending = [] if grpc is None else [asyncio.create_task(refused.end(grpc, _GRACE))]
                await asyncio.gather(serving, *ending, return_exceptions=True)
                self._executor.shutdown()


async def _served(http: Any) -> None:
    """The run of an HTTP server, which ends at once where it cannot listen: uvicorn then exits, without a message."""
    with contextlib.suppress(SystemExit):
        await http.serve()


@contextlib.contextmanager
def _on_signals(stop: asyncio.Event) -> Iterator[None]:
    """Set ``stop`` at the first signal to end; the second signal ends the process at once."""
    loop = asyncio.get_running_loop()
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.getsignal(number) for number in numbers}

    def end(number: int, frame: FrameType | None) -> None:
        for each in numbers:
            signal.signal(each, signal.SIG_DFL)
        loop.call_soon_threadsafe(stop.set)

    for number in numbers:
        signal.signal(number, end)
        _end_by_second(number)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end_by_second(number: int) -> None:
    """Let the system itself end the process by a second signal, if it can: the first one sets its default.

    A handler of Python waits for a function of C that holds the interpreter's lock. Source: sysv_signal(3).
    """
    try:
        handler = ctypes.cast(ctypes.pythonapi.PyOS_getsig, ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int))(number)
        install = ctypes.CDLL(None).sysv_signal
    except (AttributeError, OSError, TypeError):
        return
    install.argtypes, install.restype = (ctypes.c_int, ctypes.c_void_p), ctypes.c_void_p
    install(number, handler)


def _http_server(dataplane: Any, options: ServeOptions, extensions: Extensions, executor: ThreadPoolExecutor) -> Any:
    import fastapi
    from fastapi.exceptions import RequestValidationError
    from fastapi.responses import JSONResponse
    from kserve import errors
    from kserve.protocol.rest.server import metrics_handler
    from kserve.protocol.rest.v2_endpoints import register_v2_endpoints

    async def refuse(request: Any, error: Exception) -> Any:
        return JSONResponse({"error": _unreadable(error)}, 400)

    async def late(request: Any, error: Exception) -> Any:
        return JSONResponse({"error": str(error)}, 504)

    app = fastapi.FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    # First, since /v2/models/stats would be a model of this name.
    http_routes(app, extensions)
    register_v2_endpoints(app, dataplane, _Fixed())
    add_pages(app, extensions, executor)
    app.add_api_route("/metrics", metrics_handler, methods=["GET"])
    for kind, handler in (
        (errors.InvalidInput, errors.invalid_input_handler), (errors.ModelNotFound, errors.model_not_found_handler),
        (errors.ModelNotReady, errors.model_not_ready_handler),
        (NotImplementedError, errors.not_implemented_error_handler),
        (RequestValidationError, refuse), (RunTimeoutError, late), (Exception, errors.generic_exception_handler),
    ):  # fmt: skip
        app.add_exception_handler(kind, handler)
    app.add_middleware(LimitedBodies, limit=options.max_request)
    app.add_middleware(LoggedRequests, log=options.log)

    return draining_server(
        app, host=options.host, port=options.port, log_level="critical", access_log=False, lifespan="off",
        timeout_graceful_shutdown=_GRACE,
    )  # fmt: skip


def _unreadable(error: Any) -> str:
    """The fault of a request that does not follow the protocol, as a sentence."""
    first = error.errors()[0] if error.errors() else {}
    where = ".".join(str(part) for part in first.get("loc", ()) if part not in ("body", "InferenceRequest", "bytes"))
    return f"the request is not one of the protocol: {where or 'body'}: {first.get('msg', 'cannot be read')}"


async def _grpc_server(
    dataplane: Any, options: ServeOptions, extensions: Extensions, interceptor: Any
) -> tuple[Any, int | None]:
    if options.grpc_port is None:
        return None, None
    from grpc import aio
    from kserve.protocol.grpc import grpc_predict_v2_pb2_grpc

    limits = [(f"grpc.max_{which}_message_length", options.max_request) for which in ("receive", "send")]
    logs = () if options.log is None else (logging_interceptor(options.log),)
    server = aio.server(interceptors=(interceptor, *logs, _status_interceptor()), options=[*limits, *_GRPC_OPTIONS])
    # First, since the handler of the protocol has calls of these names that are not implemented.
    server.add_generic_rpc_handlers((grpc_handler(extensions),))
    grpc_predict_v2_pb2_grpc.add_GRPCInferenceServiceServicer_to_server(_servicer(dataplane, extensions), server)
    try:
        port = server.add_insecure_port(f"{options.host}:{options.grpc_port}")
    except RuntimeError:
        port = 0
    if not port:
        raise ModelError(f"{options.host}:{options.grpc_port} cannot be listened on: is it in use?")
    await server.start()
    return server, port


def _status_interceptor() -> Any:
    """The interceptor that answers exceptions; that of the SDK fails for those of its own without a reason."""
    from grpc import StatusCode
    from kserve import errors
    from kserve.protocol.grpc.interceptors import ExceptionToStatusInterceptor

    statuses = {
        NotImplementedError: StatusCode.UNIMPLEMENTED,
        UnknownModelError: StatusCode.NOT_FOUND,
        errors.ModelNotFound: StatusCode.NOT_FOUND,
        errors.ModelNotReady: StatusCode.UNAVAILABLE,
        RunTimeoutError: StatusCode.DEADLINE_EXCEEDED,
        errors.InvalidInput: StatusCode.INVALID_ARGUMENT,
    }

    class Interceptor(ExceptionToStatusInterceptor):  # type: ignore[misc]  # kserve is an extra
        async def handle_exception(self, ex: Exception, request: Any, context: Any, method: str) -> None:
            status = next((status for kind, status in statuses.items() if isinstance(ex, kind)), None)
            if status is not None:
                await context.abort(status, str(ex))
            await super().handle_exception(ex, request, context, method)

    return Interceptor()


def _servicer(dataplane: Any, extensions: Extensions) -> Any:
    from kserve.protocol.grpc import grpc_predict_v2_pb2 as messages
    from kserve.protocol.grpc.servicer import InferenceServicer

    class Servicer(InferenceServicer):  # type: ignore[misc]  # kserve is an extra, which mypy does not see
        """The SDK's servicer, with the versions of models in their metadata and requests."""

        async def ModelReady(self, request: Any, context: Any) -> Any:
            extensions.model(request.name, request.version)
            return await super().ModelReady(request, context)

        async def ModelInfer(self, request: Any, context: Any) -> Any:
            extensions.model(request.model_name, request.model_version)
            return await super().ModelInfer(request, context)

        async def ModelMetadata(self, request: Any, context: Any) -> Any:
            extensions.model(request.name, request.version)
            return messages.ModelMetadataResponse(**await dataplane.model_metadata(request.name))

    return Servicer(dataplane, _Fixed())


class _Fixed:
    """A repository that refuses to load and unload models."""

    async def load(self, model_name: str) -> None:
        raise NotImplementedError("models are not loaded by requests")

    async def unload(self, model_name: str) -> None:
        raise NotImplementedError("models are not unloaded by requests")


def _dataplane_class(version: str = "") -> Any:
    from kserve.errors import InvalidInput
    from kserve.protocol.dataplane import DataPlane

    class Refusing(DataPlane):  # type: ignore[misc]  # kserve is an extra, which mypy does not see
        """The SDK's data plane with the name of this server; an error in decoding is an error of the request."""

        def metadata(self) -> dict[str, Any]:
            return {"name": "irexec", "version": version, "extensions": list(EXTENSIONS)}

        async def model_metadata(self, model_name: str) -> dict[str, Any]:
            found: dict[str, Any] = await super().model_metadata(model_name)
            return {**found, "platform": PLATFORM, "versions": [VERSION]}

        def decode(self, body: Any, headers: Any, *args: Any, model_name: str = "", **options: Any) -> Any:
            try:
                if isinstance(body, bytes):
                    return infer_request(body, headers, model_name), {}
                return super().decode(body, headers, *args, model_name=model_name, **options)
            except IrexecError as error:
                raise InvalidInput(str(error)) from None
            except InvalidInput:
                raise
            except Exception as error:
                raise InvalidInput(f"the request is not one of the protocol: {error}") from None

    return Refusing


def _model_class() -> Any:
    from kserve import InferOutput, InferRequest, InferResponse, Model
    from kserve.errors import InvalidInput, ModelNotReady

    class Served(Model):  # type: ignore[misc]  # as above
        """A model with the interface that the SDK calls."""

        def __init__(self, model: ServedModel, batcher: Batcher, statistics: ModelStatistics) -> None:
            super().__init__(model.name)
            self._served, self._batcher, self._statistics = model, batcher, statistics
            self.ready = True

        def get_input_types(self) -> list[dict[str, Any]]:
            return [_metadata(port) for port in self._served.inputs]

        def get_output_types(self) -> list[dict[str, Any]]:
            return [_metadata(port) for port in self._served.outputs]

        async def predict(self, payload: Any, headers: Any = None, response_headers: Any = None) -> Any:
            with self._statistics.request():
                return await self._predict(payload)

        async def _predict(self, payload: Any) -> Any:
            if not isinstance(payload, InferRequest):
                raise InvalidInput("the request is not one of the Open Inference Protocol")
            if not is_text(payload.id or ""):
                raise InvalidInput(f"the id of the request is {cut(repr(payload.id), 80)}, expected text")
            try:
                ports = {name: port for port in reversed(self._served.inputs) for name in port.names}
                given = {tensor.name: array_of(tensor, ports.get(tensor.name)) for tensor in payload.inputs}
                if len(given) < len(payload.inputs):
                    raise InputError(f"an input is given twice: {', '.join(tensor.name for tensor in payload.inputs)}")
                results = await self._batcher.submit(self._served.bound(given))
                wanted = _wanted(self._served, payload.request_outputs)
            except TooManyRequestsError as error:
                raise ModelNotReady(self.name, str(error)) from None
            except RunTimeoutError:
                raise
            except IrexecError as error:
                raise InvalidInput(str(error)) from None
            outputs = [_output(InferOutput, name, results[name], payload.from_grpc) for name in wanted]
            return InferResponse(
                response_id=payload.id or str(uuid.uuid4()), model_name=self.name, infer_outputs=outputs,
                from_grpc=payload.from_grpc,
                use_binary_outputs=payload.use_binary_outputs, requested_outputs=payload.request_outputs or None,
            )  # fmt: skip

    return Served


def _both(first: Ran, second: Ran) -> Ran:
    def ran(requests: int, items: int, seconds: float) -> None:
        first(requests, items, seconds)
        second(requests, items, seconds)

    return ran


def _wanted(model: ServedModel, requested: Sequence[Any] | None) -> list[str]:
    names = [port.name for port in model.outputs]
    for output in requested or ():
        if output.name not in names:
            raise InputError(f"there is no output {output.name!r}, but {', '.join(names)}")
    return list(dict.fromkeys(output.name for output in requested)) if requested else names


def _metadata(port: Port) -> dict[str, Any]:
    return {"name": port.name, "datatype": datatype_of(port.element), "shape": sizes_of(port)}


def _output(kind: Any, name: str, array: np.ndarray, is_binary: bool) -> Any:
    array = np.ascontiguousarray(array).reshape(array.shape)
    datatype = "BYTES" if array.dtype == object else datatype_of(array.dtype)
    output = kind(name, list(array.shape), datatype)
    if is_binary:
        output.set_data_from_numpy(array, binary_data=True)
    else:
        output.data = array
    return output


class _Metrics:
    """Metrics of runs, in addition to the SDK's metrics of requests."""

    def __init__(self) -> None:
        from prometheus_client import Counter, Histogram

        sizes = [1, 2, 4, 8, 16, 32, 64, 128, math.inf]
        self._requests = Histogram("irexec_batch_requests", "Requests of a run", ["model"], buckets=sizes)
        self._items = Histogram("irexec_batch_items", "Items of a run", ["model"], buckets=sizes)
        self._seconds = Histogram("irexec_run_seconds", "Seconds of a run", ["model"])
        self._runs = Counter("irexec_runs", "Runs", ["model"])

    def of(self, name: str) -> Ran:
        """The counter of the runs of a model."""

        def ran(requests: int, items: int, seconds: float) -> None:
            self._requests.labels(name).observe(requests)
            self._items.labels(name).observe(items)
            self._seconds.labels(name).observe(seconds)
            self._runs.labels(name).inc()

        return ran


@functools.cache
def _metrics() -> _Metrics:
    """The metrics of the process: its servers share one registry of names."""
    return _Metrics()
