"""irexec serve"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

import irexec
from irexec.backend.threads import thread_count
from irexec.cli import render
from irexec.cli.option_groups import OptionGroup, command, flag, is_given, option, settings
from irexec.cli.options import LIMITS, SHAPES, WEIGHTS, InputOptions, LimitOptions, WeightsOptions
from irexec.cli.render import note_mapping
from irexec.cli.run_options import COMPUTE, ComputeOptions
from irexec.cli.streams import leave_to_command
from irexec.integrations import open_inference
from irexec.integrations.open_inference import ServeOptions
from irexec.tools.batch.predictor import PredictorOptions
from irexec.tools.serving import ServedModel


def _server(
    port: int, no_grpc: bool, grpc_port: int, max_delay: float, max_request: int, log: bool, **values: Any
) -> ServeOptions:
    if no_grpc and is_given("grpc_port"):
        raise click.UsageError("--grpc-port and --no-grpc contradict each other")
    if port and port == grpc_port and not no_grpc:
        raise click.UsageError(f"--port and --grpc-port are both {port}: HTTP and gRPC need ports of their own")
    return ServeOptions(
        port=port,
        grpc_port=None if no_grpc else grpc_port,
        max_delay=max_delay / 1e3,
        max_request=max_request << 20,
        log=render.remark if log else None,
        version=irexec.__version__,
        **values,
    )


_SERVER = OptionGroup(
    "Server",
    _server,
    {
        "host": option("The address to listen on; 0.0.0.0 is every address of this machine.", default="127.0.0.1"),
        "port": option("For HTTP; 0 is any that is free.", type=click.IntRange(0, 65535), default=8080),
        "grpc_port": option("For gRPC; 0 is any that is free.", type=click.IntRange(0, 65535), default=8081),
        "no_grpc": flag("Answer HTTP only."),
        "log": flag("Write a line for each request to stderr."),
        "max_batch": option("Items that run together; 1 for no batches.", type=click.IntRange(1), default=32),
        "max_delay": option(
            "--max-delay-ms", "Time that a request waits for others.", type=click.FloatRange(0, 60_000), default=5
        ),
        "jobs": option("Number of runs that may be under way at once.", type=click.IntRange(1, 256), default=1),
        "max_request": option("--max-request-mb", "The largest request.", type=click.IntRange(1, 2047), default=64),
    },
)


@command()
@click.argument("models", metavar="[NAME=]MODEL...", nargs=-1, required=True)
@_SERVER("request")
@SHAPES("inputs", shapes="Set the shape of an input of the model; may be repeated.")
@WEIGHTS("files", only=("mmap",))
@COMPUTE("compute", only=("precision",))
@LIMITS(
    "limits",
    threads="Number of threads of each run; default: the cores that a job has.",
    timeout="Stop a run after this time, and answer 504.",
)
@flag("--json", "as_json", "A line of versioned JSON once the server listens.")
def serve(
    models: tuple[str, ...],
    request: ServeOptions,
    inputs: InputOptions,
    files: WeightsOptions,
    compute: ComputeOptions,
    limits: LimitOptions,
    as_json: bool,
) -> None:
    """Answer requests to each MODEL (an .xml or .onnx) by the Open Inference Protocol (KServe V2), over HTTP and gRPC.

    \b
    irexec serve model.xml
    irexec serve classifier=resnet.xml detector=yolo.onnx --port 9000 --jobs 2
    curl localhost:8080/v2/models/model

    A model is called NAME, or like its file. Requests that come at about the same time run together, if the model
    takes any number of items along axis 0. /metrics has figures for Prometheus.
    Ctrl-C and SIGTERM end it when the requests under way are answered. It needs pip install 'irexec[serve]'.
    """
    paths = _by_name(models)
    if inputs.shapes and len(paths) > 1:
        raise click.UsageError(f"--shape is for a single model, here are {len(paths)}")
    open_inference.load_kserve()
    threads = limits.threads or max(1, thread_count() // request.jobs)
    options = settings(PredictorOptions, inputs, compute, limits, threads=threads, mmap=files.mmap)
    if files.mmap and not as_json:
        for path in paths.values():
            note_mapping(path)
    with render.progress("loading"):
        served = [ServedModel(name, path, options, limits.timeout) for name, path in paths.items()]

    def started(http: str, grpc: str | None) -> None:
        if as_json:
            render.json_line({"http": http, "grpc": grpc, "models": list(paths)})
        else:
            render.show(f"{http}{'' if grpc is None else f' and {grpc}'}: {', '.join(paths)}")

    leave_to_command()
    open_inference.serve(served, request, started)


def _by_name(models: tuple[str, ...]) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in models:
        name, equals, path = text.partition("=")
        name, path = (name, path) if equals and "/" not in name else (Path(text).stem, text)
        if not name or not path or "/" in name:
            raise click.BadParameter(f"{text!r} is not NAME=MODEL", param_hint="'MODEL'")
        if name in found:
            raise click.BadParameter(f"two models are called {name!r}: {found[name]} and {path}", param_hint="'MODEL'")
        found[name] = path
    return found
