"""Tables, conditions and networks of the benchmarks."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import onnx
import pytest

from tests.benchmarks import conditions
from tests.benchmarks.long_running import THREADS, WORK, state
from tests.benchmarks.models import NETWORKS, graph
from tests.benchmarks.networks import merged
from tests.benchmarks.table import (
    BEGIN,
    END,
    MEAN_BEGIN,
    MEAN_END,
    markdown,
    mean_ratio,
    ratio,
    replaced,
    three_digits,
    written,
)


def result(
    title: str, engine: str, *ms: float, threads: int | None = 1, load: str = "none", **once: float
) -> dict[str, Any]:
    once = {"load_ms": 500.0, "first_ms": 20.0, "peak_mb": 100.0, **once}
    return {"title": title, "engine": engine, "ms": list(ms), "threads": threads, "load": load, "quota": None, **once}


RESULTS = [
    result("A", "irexec", 9, 10, 30, peak_mb=81.4),
    result("A", "openvino", 4, 5, 6),
    result("B", "irexec", 100, load_ms=1234),
    result("B", "openvino", 200, first_ms=1999),
]
MACHINE = {"cpu": "A CPU", "cores": 2, "flags": ["AVX2"], "versions": {"Python": "3.11", "NumPy": "2.4"}}


def test_ratio_is_of_medians_or_minima() -> None:
    engines = {"irexec": RESULTS[0], "openvino": RESULTS[1]}
    assert ratio(engines) == 0.5
    assert ratio(engines, min) == pytest.approx(4 / 9)


def test_mean_is_geometric() -> None:
    assert mean_ratio(RESULTS) == pytest.approx(1.0)  # 0.5 and 2
    assert mean_ratio(RESULTS[:2]) == 0.5


def test_merged_keeps_all_times_and_the_smaller_figures() -> None:
    first = {"ms": [1.0, 2.0], "load_ms": 5.0, "first_ms": 7.0, "peak_mb": 9.0}
    second = {"ms": [3.0], "load_ms": 6.0, "first_ms": 4.0, "peak_mb": 8.0}
    assert merged(first, second) == {"ms": [1.0, 2.0, 3.0], "load_ms": 5.0, "first_ms": 4.0, "peak_mb": 8.0}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.1234, "0.123"), (1.234, "1.23"), (9.99, "9.99"), (12.34, "12.3"), (123.4, "123"), (1234.0, "1230"),
        (21987.0, "22000"),
    ],
)  # fmt: skip
def test_three_digits(value: float, text: str) -> None:
    assert three_digits(value) == text


def test_table() -> None:
    assert markdown({"machine": MACHINE, "results": RESULTS}).splitlines() == [
        "Batch 1, float32, median of warm runs. A CPU, 2 cores, AVX2; Python 3.11, NumPy 2.4.",
        "",
        "**1 thread**",
        "",
        "| network | OpenVINO ms | irexec ms | OpenVINO / irexec | peak memory, MB: OpenVINO / irexec "
        "| load + compile, s: OpenVINO / irexec | first run, ms: OpenVINO / irexec |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
        "| A | 5.00 | 10.0 | 0.50 | 100 / 81 | 0.50 / 0.50 | 20.0 / 20.0 |",
        "| B | 200 | 100 | 2.00 | 100 / 100 | 0.50 / 1.23 | 2000 / 20.0 |",
        "| geometric mean |  |  | 1.00 |  |  |  |",
    ]


def test_a_table_for_each_condition() -> None:
    other = [
        result("A", "irexec", 20, threads=None, load="busy"),
        result("A", "openvino", 10, threads=None, load="busy"),
    ]
    lines = markdown({"machine": MACHINE, "results": RESULTS + other}).splitlines()
    assert [line for line in lines if line.startswith("**")] == [
        "**1 thread**",
        "**Default number of threads, one busy process per core**",
    ]


def test_an_engine_without_a_result_leaves_its_cells_empty() -> None:
    table = markdown({"machine": MACHINE, "results": [*RESULTS, result("A", "onnxruntime", 7)]})
    rows = {
        line.split("|")[1].strip(): [cell.strip() for cell in line.split("|")[2:6]]
        for line in table.splitlines()
        if line.startswith("|")
    }
    assert rows["A"] == ["5.00", "7.00", "10.0", "0.50"]
    assert rows["B"] == ["200", "", "100", "2.00"]


DOCUMENT = f"# Speed\n\n{BEGIN}\nold\n{END}\nafter\n"


def test_replaced_keeps_what_is_around() -> None:
    once = replaced(DOCUMENT, "| new |\n")
    assert once == f"# Speed\n\n{BEGIN}\n\n| new |\n\n{END}\nafter\n"
    assert replaced(once, "| new |") == once


@pytest.mark.parametrize("document", ["", DOCUMENT * 2, f"{END}{BEGIN}", DOCUMENT.replace(END, "")])
def test_replaced_refuses_a_document_without_markers(document: str) -> None:
    with pytest.raises(ValueError, match="once each, in this order"):
        replaced(document, "| new |")


def test_a_document_has_the_table_or_the_means() -> None:
    report = {"machine": MACHINE, "results": RESULTS}
    means = "| geometric mean of 2 networks | OpenVINO / irexec |\n| --- | ---: |\n| 1 thread | 1.00 |"
    assert written(f"x {MEAN_BEGIN} old {MEAN_END} y", report, "median") == f"x {MEAN_BEGIN}\n\n{means}\n\n{MEAN_END} y"
    assert "| B |" in written(f"{BEGIN}{END}", report, "median")


# A quota that cannot be set is an error that names every attempt, never a measurement without it.


def test_no_controller(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(conditions, "_CGROUPS", tmp_path)
    with (
        pytest.raises(conditions.QuotaUnavailable, match=r"version 2: no cpu controller; version 1: no cpu controller"),
        conditions.cpu_quota(1),
    ):
        pass


def test_group_that_cannot_be_made(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A file is where the group's directory would have its parent."""
    (tmp_path / "cgroup.controllers").write_text("cpuset cpu memory\n")
    (tmp_path / "group").write_text("")
    monkeypatch.setattr(conditions, "_CGROUPS", tmp_path)
    monkeypatch.setattr(conditions, "_group_of_this_process", lambda controller: "group")
    with pytest.raises(conditions.QuotaUnavailable, match=r"version 2: .*Not a directory"), conditions.cpu_quota(1):
        pass


# The work of the long runs is done right; that nothing grows is measured by the command.


FEW = {
    "runs": 20, "compilations": 2, "files": 3, "shapes": 20, "threads": 4 * THREADS, "sessions": 4 * THREADS,
    "forks": 2, "exits": 2,
}  # fmt: skip


@pytest.mark.skipif(sys.platform != "linux", reason="fork and /proc")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize("name", WORK)
@pytest.mark.sampled(6)
def test_a_little_of_it(name: str) -> None:
    work = WORK[name][0]()
    work(FEW[name])
    before = state()
    work(FEW[name])
    after = state()
    assert after[1] <= before[1], "open files"
    assert after[2] <= before[2], "threads"


# The networks of the benchmark have the published sizes.


NAMES = list(NETWORKS)


@pytest.mark.parametrize("name", NAMES)
def test_parameters_and_multiply_accumulates_are_the_published_ones(name: str) -> None:
    made, published = graph(name), NETWORKS[name]
    assert made.parameters / 1e6 == pytest.approx(published.parameters, rel=0.02)
    assert made.macs / 1e9 == pytest.approx(published.gmacs, rel=0.02)


@pytest.mark.parametrize("name", ["mobilenet_v2", "mobilenet_v3", "efficientnet_b0", "yolov8n"])
def test_model_is_valid_and_has_the_counted_weights(name: str) -> None:
    """Those that are small enough to be made here; ONNX infers the shapes itself and compares them with those declared."""
    made = graph(name)
    model = made.model()
    onnx.checker.check_model(model, full_check=True)
    stored = sum(
        onnx.numpy_helper.to_array(tensor).size
        for tensor in model.graph.initializer
        if tensor.name.startswith("weight")
    )
    assert stored == made.parameters


def test_weights_are_the_same_every_time() -> None:
    assert graph("mobilenet_v3").model() == graph("mobilenet_v3").model()
