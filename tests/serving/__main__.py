"""The test of the server: equal results, load with and without batches, malformed requests, and an end under load."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import numpy as np
import tritonclient.grpc
import tritonclient.http

import irexec
from tests.serving import ending, malformed, models
from tests.serving.server import Server, asked, at_once, inputs

_CLIENTS = 64


def same_results(server: Server, paths: dict[str, str]) -> int:
    """Both protocols and curl against a compiled model; returns how many differ."""
    wrong = 0
    for name, path in paths.items():
        compiled, given = irexec.compile_model(path), inputs(name, 1)
        expected = compiled(given)
        answers = {
            "http": asked(tritonclient.http, tritonclient.http.InferenceServerClient(server.http), name, given),
            "grpc": asked(tritonclient.grpc, tritonclient.grpc.InferenceServerClient(server.grpc), name, given),
        }
        for output in expected:
            found = {how: answer.as_numpy(output) for how, answer in answers.items()} | {
                "curl": _curl(server, name, given, output)
            }
            for how, array in found.items():
                if array.shape != expected[output].shape or not np.allclose(
                    array, expected[output], rtol=1e-5, atol=1e-6
                ):
                    wrong += 1
                    print(f"PROBLEM: {name} {output} over {how}: {array}, expected {expected[output]}")
    print(f"results: {len(paths)} models over HTTP, gRPC and curl, {wrong} differ")
    return wrong


def _curl(server: Server, name: str, given: dict[str, np.ndarray], output: str) -> np.ndarray:
    types = {"f": "FP32", "i": "INT64"}
    tensors = [
        {"name": key, "shape": array.shape, "datatype": types[array.dtype.kind], "data": array.ravel().tolist()}
        for key, array in given.items()
    ]
    command = ["curl", "-s", "-d", json.dumps({"inputs": tensors}), f"http://{server.http}/v2/models/{name}/infer"]
    answer = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    (found,) = [each for each in answer["outputs"] if each["name"] == output]
    return np.array(found["data"]).reshape(found["shape"])


def load(server: Server, seconds: float, name: str = "transformer") -> tuple[int, list[float]]:
    """64 clients for so long; returns how many requests failed, and the seconds of the others."""
    times: list[float] = []
    failed = [0]
    end = time.monotonic() + seconds

    def client(seed: int) -> None:
        connection, given = tritonclient.http.InferenceServerClient(server.http), inputs(name, seed)
        while time.monotonic() < end:
            began = time.perf_counter()
            try:
                asked(tritonclient.http, connection, name, given)
                times.append(time.perf_counter() - began)
            except Exception as error:
                failed[0] += 1
                print(f"PROBLEM: {error}")

    at_once(_CLIENTS, client)
    return failed[0], times


def mean_batch(server: Server, name: str = "transformer") -> float:
    """Items of a run, on average, as /metrics has it."""
    text = urllib.request.urlopen(f"http://{server.http}/metrics", timeout=10).read().decode()
    label = re.escape(f'{{model="{name}"}}')
    values = [float(re.search(rf"irexec_batch_items_{what}{label} (\S+)", text)[1]) for what in ("sum", "count")]
    return values[0] / values[1]


def main(seconds: float) -> int:
    """Returns 1 where anything is wrong."""
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        paths = models.build(Path(folder))
        with Server(paths, ["--max-request-mb", "1"]) as server:
            wrong += same_results(server, paths)
            bad = malformed.problems(server.http)
            print(f"malformed: {2 * len(malformed.CASES)} requests, {len(bad)} not answered with 4xx", *bad, sep="\n  ")
            wrong += len(bad) + same_results(server, paths)
        for options in ([], ["--max-batch", "1"]):
            with Server(paths, options) as server:
                failed, times = load(server, seconds)
                p50, p99 = np.percentile(np.array(times) * 1e3, [50, 99])
                print(
                    f"{_CLIENTS} clients for {seconds:g} s {options or 'with batches'}: {len(times)} answers, {failed} failed, "
                    f"p50 {p50:.1f} ms, p99 {p99:.1f} ms, {mean_batch(server):.1f} items a run"
                )
                wrong += failed
        wrong += ending.under_load(paths) + ending.during_a_long_run(models.slow(Path(folder)))
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]) if len(sys.argv) > 1 else 60))
