"""The server's answers without a network: the SDK's application is called in this process."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

kserve = pytest.importorskip("kserve")
httpx = pytest.importorskip("httpx")

from irexec import Builder  # noqa: E402
from irexec.integrations import open_inference  # noqa: E402
from irexec.tools.batch.predictor import PredictorOptions  # noqa: E402
from irexec.tools.serving.served_model import ServedModel  # noqa: E402
from tests.tools.batch import models  # noqa: E402

Ask = Callable[..., Any]


@pytest.fixture(scope="module")
def ask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ask]:
    """Sends a request to a server with the models ``m`` (y = 2 x + 1) and ``texts``, which gives back what it gets."""
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
    server = open_inference._Server(served, open_inference.ServeOptions(max_delay=0.0))
    app = open_inference._http_server(
        open_inference._dataplane_class()(server._registry), open_inference.ServeOptions()
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
        "name": "m", "versions": None, "platform": "",
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
