"""irexec serve"""

from __future__ import annotations

from pathlib import Path

import click

from irexec.backend.threads import thread_count
from irexec.cli import render
from irexec.cli.limit_options import max_memory_option, threads_option
from irexec.cli.precision_option import precision_option
from irexec.cli.shape_option import METAVAR, ShapeOptions, ShapeType, shapes_by_input
from irexec.cli.signals import leave_to_command
from irexec.cli.weights_option import no_mmap, note_mapping
from irexec.runtime.precision import Precision


@click.command()
@click.argument("models", metavar="[NAME=]MODEL...", nargs=-1, required=True)
@click.option(
    "--shape",
    "shapes",
    multiple=True,
    type=ShapeType(),
    metavar=METAVAR,
    help="Give an input of the model this shape; may be repeated.",
)
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="The address to listen on; 0.0.0.0 is every address of this machine.",
)
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8080, show_default=True, help="For HTTP; 0 is any that is free."
)
@click.option(
    "--grpc-port",
    type=click.IntRange(0, 65535),
    default=8081,
    show_default=True,
    help="For gRPC; 0 is any that is free.",
)
@click.option("--no-grpc", is_flag=True, help="Answer HTTP only.")
@click.option(
    "--max-batch",
    type=click.IntRange(1),
    default=32,
    show_default=True,
    help="Items that run together; 1 for no batches.",
)
@click.option(
    "--max-delay-ms",
    type=click.FloatRange(0, 60_000),
    default=5,
    show_default=True,
    help="How long a request waits for others.",
)
@click.option(
    "--jobs", type=click.IntRange(1, 256), default=1, show_default=True, help="How many runs may be under way at once."
)
@threads_option("How many threads work on each run; default: those of the cores that a job has.")
@click.option(
    "--max-request-mb", type=click.IntRange(1, 2047), default=64, show_default=True, help="The largest request."
)
@precision_option()
@no_mmap
@max_memory_option()
@click.option("--json", "as_json", is_flag=True, help="A line of versioned JSON once the addresses are listened on.")
def serve(
    models: tuple[str, ...], shapes: tuple[ShapeOptions, ...], host: str, port: int, grpc_port: int, no_grpc: bool, max_batch: int,
    max_delay_ms: float, jobs: int, threads: int | None, max_request_mb: int, precision: Precision, mmap: bool, max_memory: int | None,
    as_json: bool,
) -> None:  # fmt: skip
    """Answer requests to each MODEL (an .xml or .onnx) by the Open Inference Protocol (KServe V2), over HTTP and gRPC.

    \b
    irexec serve model.xml
    irexec serve classifier=resnet.xml detector=yolo.onnx --port 9000 --jobs 2
    curl localhost:8080/v2/models/model

    A model is called NAME, or like its file. Requests that come at about the same time run together, if the model
    takes any number of items along axis 0. /metrics has figures for Prometheus.
    Ctrl-C and SIGTERM end it when the requests under way are answered. It needs pip install 'irexec[serve]'.
    """
    from irexec.integrations.open_inference import ServeOptions, load_kserve
    from irexec.integrations.open_inference import serve as answer
    from irexec.tools.batch.predictor import PredictorOptions
    from irexec.tools.serving.served_model import ServedModel

    paths = _by_name(models)
    if shapes and len(paths) > 1:
        raise click.UsageError(f"--shape is for a single model, here are {len(paths)}")
    load_kserve()
    options = PredictorOptions(
        shapes=shapes_by_input(shapes, "--shape"), threads=threads or max(1, thread_count() // jobs), precision=precision,
        mmap=mmap, max_memory=max_memory,
    )  # fmt: skip
    if mmap and not as_json:
        for path in paths.values():
            note_mapping(path)
    with render.progress("loading"):
        served = [ServedModel(name, path, options) for name, path in paths.items()]
    request = ServeOptions(
        host=host, port=port, grpc_port=None if no_grpc else grpc_port, max_batch=max_batch, max_delay=max_delay_ms / 1e3, jobs=jobs,
        max_request=max_request_mb << 20,
    )  # fmt: skip

    def started(http: str, grpc: str | None) -> None:
        if as_json:
            render.json_line({"http": http, "grpc": grpc, "models": list(paths)})
        else:
            render.line(f"{http}{'' if grpc is None else f' and {grpc}'}: {', '.join(paths)}")

    leave_to_command()
    answer(served, request, started)


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
