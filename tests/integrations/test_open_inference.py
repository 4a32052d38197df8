"""The server's answers without a network: the SDK's application is called in this process."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

kserve = pytest.importorskip("kserve")
httpx = pytest.importorskip("httpx")

import irexec  # noqa: E402
from irexec import Builder  # noqa: E402
from irexec.integrations import open_inference  # noqa: E402
from irexec.tools.batch.predictor import PredictorOptions  # noqa: E402
from irexec.tools.serving import ServedModel  # noqa: E402
from tests.tools.batch import models  # noqa: E402

Ask = Callable[..., Any]
LOG: list[str] = []


@pytest.fixture(scope="module")
def ask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ask]:
    """Sends a request to a server with the models ``m`` (y = 2 x + 1) and ``texts``, which gives back what it gets.

    The second server of the process: servers share one set of metrics.
    """
    folder = tmp_path_factory.mktemp("models")
    b = Builder()
    b.result(
        b.emit(
            "Concat",
            b.parameter("string", [-1], "t"),
            b.constant(np.array(["end"], object), "string"),
            axis=0,
            names=["u"],
        )
    )
    served = [
        ServedModel("m", models.twice_plus_one(folder, [-1, 3]), PredictorOptions()),
        ServedModel("texts", models.saved(b, folder, "texts"), PredictorOptions()),
    ]
    open_inference.load_kserve()
    options = open_inference.ServeOptions(max_delay=0.0, version=irexec.__version__)
    _, server = open_inference._Server(served, options), open_inference._Server(served, options)
    app = open_inference._http_server(
        open_inference._dataplane_class(irexec.__version__)(server._registry),
        open_inference.ServeOptions(log=LOG.append),
        server.extensions,
        server._executor,
    ).config.app

    def send(method: str, path: str, **options: Any) -> Any:
        async def sent() -> Any:
            async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://server") as client:
                return await client.request(method, path, **options)

        # A semaphore belongs to the loop in which it is first waited for.
        server._slots._loop = None
        return asyncio.run(sent())

    yield send
    server._executor.shutdown()


def test_metadata(ask: Ask) -> None:
    assert ask("GET", "/v2/models/m").json() == {
        "name": "m", "versions": ["1"], "platform": "irexec",
        "inputs": [{"name": "x", "datatype": "FP32", "shape": [-1, 3]}], "outputs": [{"name": "y", "datatype": "FP32", "shape": [-1, 3]}],
    }  # fmt: skip


def test_json(ask: Ask) -> None:
    x = {"name": "x", "shape": [1, 3], "datatype": "FP32", "data": [[0, 1, 2]]}
    answer = ask("POST", "/v2/models/m/infer", json={"inputs": [x]}).json()
    assert [(each["name"], each["shape"], each["data"]) for each in answer["outputs"]] == [("y", [1, 3], [1, 3, 5])]


def test_texts(ask: Ask) -> None:
    t = {"name": "t", "shape": [2], "datatype": "BYTES", "data": ["a", "ö"]}
    assert ask("POST", "/v2/models/texts/infer", json={"inputs": [t]}).json()["outputs"][0]["data"] == ["a", "ö", "end"]


def test_not_finite_results_are_null(ask: Ask) -> None:
    x = {"name": "x", "shape": [1, 3], "datatype": "FP32", "data": [3e38, 0, 0]}
    assert ask("POST", "/v2/models/m/infer", json={"inputs": [x]}).json()["outputs"][0]["data"] == [None, 1, 1]


def test_binary(ask: Ask) -> None:
    data = np.array([[1, 2, 3]], np.float32).tobytes()
    head = json.dumps({
        "inputs": [{"name": "x", "shape": [1, 3], "datatype": "FP32", "parameters": {"binary_data_size": 12}}],
        "outputs": [{"name": "y", "parameters": {"binary_data": True}}],
    }).encode()  # fmt: skip
    length = "Inference-Header-Content-Length"
    answer = ask("POST", "/v2/models/m/infer", content=head + data, headers={length: str(len(head))})
    assert np.frombuffer(answer.content[int(answer.headers[length]) :], np.float32).tolist() == [3, 5, 7]


def test_models_are_not_changed_by_requests(ask: Ask) -> None:
    for what in ("load", "unload"):
        assert ask("POST", f"/v2/repository/models/m/{what}").status_code == 501
    assert ask("GET", "/v2/models/none").status_code == 404
    assert ask("POST", "/v2/models/m/infer", content=b" " * (65 << 20)).status_code == 413


def test_the_server_has_its_own_name_and_version(ask: Ask) -> None:
    found = ask("GET", "/v2").json()
    assert (found["name"], found["version"]) == ("irexec", irexec.__version__)
    assert {"model_configuration", "statistics"} <= set(found["extensions"])


def test_the_configuration_of_a_model(ask: Ask) -> None:
    assert ask("GET", "/v2/models/m/config").json() == {
        "name": "m", "platform": "irexec", "backend": "irexec", "max_batch_size": 32,
        "input": [{"name": "x", "data_type": "TYPE_FP32", "dims": [3]}],
        "output": [{"name": "y", "data_type": "TYPE_FP32", "dims": [3]}],
    }  # fmt: skip
    texts = ask("GET", "/v2/models/texts/config").json()
    assert texts["max_batch_size"] == 0
    assert texts["input"] == [{"name": "t", "data_type": "TYPE_STRING", "dims": [-1]}]


def test_statistics_count_requests_runs_and_items(ask: Ask) -> None:
    def stats() -> Any:
        (found,) = ask("GET", "/v2/models/m/stats").json()["model_stats"]
        return found

    before = stats()
    x = {"name": "x", "shape": [2, 3], "datatype": "FP32", "data": [0] * 6}
    assert ask("POST", "/v2/models/m/infer", json={"inputs": [x]}).status_code == 200
    assert ask("POST", "/v2/models/m/infer", json={"inputs": [x | {"name": "z"}]}).status_code == 400
    after = stats()
    assert (after["name"], after["version"]) == ("m", "1")
    assert after["inference_count"] - before["inference_count"] == 2
    assert after["execution_count"] - before["execution_count"] == 1
    for name, more in (("success", 1), ("fail", 1), ("compute_infer", 1), ("queue", 1)):
        assert after["inference_stats"][name]["count"] - before["inference_stats"][name]["count"] == more
    success, infer, queue = (after["inference_stats"][name]["ns"] for name in ("success", "compute_infer", "queue"))
    assert success == infer + queue
    assert {each["batch_size"] for each in after["batch_stats"]} >= {2}
    assert after["last_inference"] > 1_600_000_000_000
    assert [each["name"] for each in ask("GET", "/v2/models/stats").json()["model_stats"]] == ["m", "texts"]


def test_the_index_of_the_repository(ask: Ask) -> None:
    found = ask("POST", "/v2/repository/index", json={}).json()
    assert found == [{"name": name, "version": "1", "state": "READY", "reason": ""} for name in ("m", "texts")]


def test_version_1_is_the_only_one(ask: Ask) -> None:
    for end in ("", "/ready", "/config", "/stats"):
        assert ask("GET", f"/v2/models/m/versions/1{end}").json() == ask("GET", f"/v2/models/m{end}").json()
    answer = ask("GET", "/v2/models/m/versions/2/config")
    assert (answer.status_code, answer.json()) == (404, {"error": "there is no version '2', only '1'"})


@pytest.mark.parametrize(
    "path", ["/v2/models/none/config", "/v2/models/none/stats", "/models/none", "/models/none/graph"]
)
def test_a_model_that_does_not_exist(path: str, ask: Ask) -> None:
    answer = ask("GET", path)
    assert (answer.status_code, answer.json()) == (404, {"error": "there is no model 'none'"})


def test_pages(ask: Ask) -> None:
    index = ask("GET", "/")
    assert index.headers["content-type"].startswith("text/html")
    assert "<a href='/models/m'>m</a>" in index.text
    assert f"irexec {irexec.__version__}" in index.text
    page = ask("GET", "/models/m").text
    assert "x: f32[?,3]" in page
    assert "src='/models/m/graph'" in page
    graph = ask("GET", "/models/m/graph").text
    assert "Multiply" in graph
    assert "<svg" in graph or "<script" in graph


def test_requests_are_logged(ask: Ask) -> None:
    LOG.clear()
    ask("GET", "/v2/models/m/config")
    ask("GET", "/v2/models/no%1b[31m/config")
    assert [line.split(" ", 1)[1].rsplit(" ", 2)[0] for line in LOG] == [
        "http GET /v2/models/m/config 200", "http GET /v2/models/no\\x1b[31m/config 404",
    ]  # fmt: skip


class _NoMetrics:
    def of(self, name: str) -> Callable[[int, int, float], None]:
        return lambda requests, items, seconds: None


@pytest.fixture(scope="module")
def grpc_address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, list[str]]]:
    """The address of a gRPC server with the model ``m``, and the lines of its log."""
    import threading

    lines: list[str] = []
    options = open_inference.ServeOptions(grpc_port=0, version=irexec.__version__, log=lines.append)
    model = ServedModel("m", models.twice_plus_one(tmp_path_factory.mktemp("grpc"), [-1, 3]), PredictorOptions())
    ready, loop = threading.Event(), asyncio.new_event_loop()
    found: list[Any] = []

    async def run() -> None:
        from irexec.integrations.servers import RefusedCalls

        server = open_inference._Server([model], options)
        plane = open_inference._dataplane_class(irexec.__version__)(server._registry)
        grpc, port = await open_inference._grpc_server(plane, options, server.extensions, RefusedCalls().interceptor)
        stop = asyncio.Event()
        found.extend([port, stop])
        ready.set()
        await stop.wait()
        await grpc.stop(None)
        server._executor.shutdown()

    open_inference.load_kserve()
    thread = threading.Thread(target=lambda: loop.run_until_complete(run()))
    with pytest.MonkeyPatch.context() as patch:
        # Prometheus has one registry in a process, which the other server has filled.
        patch.setattr(open_inference, "_Metrics", _NoMetrics)
        thread.start()
        assert ready.wait(60)
    yield f"127.0.0.1:{found[0]}", lines
    loop.call_soon_threadsafe(found[1].set)
    thread.join()


_CLIENT = """
import sys
import numpy as np
import tritonclient.grpc as triton

client = triton.InferenceServerClient(sys.argv[1])
metadata = client.get_server_metadata(as_json=True)
print(metadata["name"], metadata["version"])
model = client.get_model_metadata("m", as_json=True)
print(model["platform"], model["versions"])
config = client.get_model_config("m").config
print(config.name, config.max_batch_size, config.backend)
print([(one.name, one.data_type, list(one.dims)) for one in [*config.input, *config.output]])
given = triton.InferInput("x", [2, 3], "FP32")
given.set_data_from_numpy(np.zeros((2, 3), np.float32))
print(client.infer("m", [given]).as_numpy("y").tolist())
(stats,) = client.get_inference_statistics("m").model_stats
print(stats.name, stats.version, stats.inference_count, stats.execution_count)
print(stats.inference_stats.success.count, stats.inference_stats.success.ns > 0, [one.batch_size for one in stats.batch_stats])
print([(one.name, one.version, one.state) for one in client.get_model_repository_index().models])
try:
    client.get_model_config("none")
except triton.InferenceServerException as error:
    print(error.status(), error.message())
"""


def test_extensions_over_grpc(grpc_address: tuple[str, list[str]]) -> None:
    """By tritonclient in a process of its own: its messages have the names that the SDK's messages have here."""
    if find_spec("tritonclient") is None:
        pytest.skip("needs tritonclient")
    address, lines = grpc_address
    done = subprocess.run([sys.executable, "-c", _CLIENT, address], capture_output=True, text=True, timeout=120)
    assert done.stdout.splitlines() == [
        f"irexec {irexec.__version__}",
        "irexec ['1']",
        "m 32 irexec",
        "[('x', 11, [3]), ('y', 11, [3])]",
        "[[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]",
        "m 1 2 1",
        "1 True [2]",
        "[('m', '1', 'READY')]",
        "StatusCode.NOT_FOUND there is no model 'none'",
    ], done.stderr
    assert any(" grpc ModelConfig m OK " in line for line in lines)
    assert any(" grpc ModelConfig none NOT_FOUND " in line for line in lines)


@pytest.mark.slow
def test_the_sdk_does_not_parse_the_arguments_of_this_program() -> None:
    code = "import sys; sys.argv += ['--log', '--protocol']; from irexec.integrations import open_inference as o; o.load_kserve(); print(sys.argv[-1])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stdout == "--protocol\n", done.stderr
