"""Results of the benchmark as a table in Markdown, and the table in a document.

    python -m tests.benchmarks.table RESULTS.json [--statistic minimum] [--write README.md docs/performance.md]

A document has the table between ``<!-- benchmark:begin -->`` and ``<!-- benchmark:end -->``, or the means alone between
``<!-- benchmark-mean:begin -->`` and ``<!-- benchmark-mean:end -->``.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any

BEGIN, END = "<!-- benchmark:begin -->", "<!-- benchmark:end -->"
MEAN_BEGIN, MEAN_END = "<!-- benchmark-mean:begin -->", "<!-- benchmark-mean:end -->"
Result = dict[str, Any]


Statistic = Callable[[Sequence[float]], float]
# The minimum is for a machine that does other things meanwhile: they only ever add to a time.
STATISTICS: dict[str, Statistic] = {"median": median, "minimum": min}


def ratio(results: dict[str, Result], statistic: Statistic = median) -> float:
    """OpenVINO's time over irexec's: above 1, irexec is faster."""
    return statistic(results["openvino"]["ms"]) / statistic(results["irexec"]["ms"])


def by_network(results: Sequence[Result]) -> dict[str, dict[str, Result]]:
    """The results of each engine for each network, in the order in which the networks come first."""
    found: dict[str, dict[str, Result]] = {}
    for result in results:
        found.setdefault(result["title"], {})[result["engine"]] = result
    return found


def mean_ratio(results: Sequence[Result], statistic: Statistic = median) -> float:
    """The geometric mean of the ratios of the networks."""
    return geometric_mean([ratio(engines, statistic) for engines in by_network(results).values()])


def three_digits(value: float) -> str:
    """Three significant digits, without an exponent: 0.123, 1.23, 12.3, 123, 1230."""
    digits = next((n for limit, n in ((1, 3), (10, 2), (100, 1)) if abs(value) < limit), 0)
    return f"{value:.{digits}f}" if abs(value) < 1000 else f"{float(f'{value:.2e}'):.0f}"


def conditions(results: Sequence[Result]) -> list[tuple[Any, ...]]:
    """The different (threads, load, quota) in the order in which they come first."""
    return list(dict.fromkeys((r["threads"], r["load"], r["quota"]) for r in results))


def describe(threads: int | None, load: str, quota: float | None) -> str:
    """The conditions in words."""
    count = "default number of threads" if threads is None else f"{threads} thread{'s' if threads > 1 else ''}"
    beside = ", one busy process per core" if load == "busy" else ""
    limit = f", under a quota of {quota:g} CPU" if quota else ""
    text = count + beside + limit
    return text[0].upper() + text[1:]


def markdown(report: dict[str, Any], statistic: str = "median") -> str:
    """One table for each condition, under a line that names the machine."""
    is_quantised = all(r["title"].endswith("INT8") for r in report["results"])
    parts = [machine_line(report["machine"], statistic, "INT8" if is_quantised else "float32")]
    for condition in conditions(report["results"]):
        chosen = [r for r in report["results"] if (r["threads"], r["load"], r["quota"]) == condition]
        parts.append(f"**{describe(*condition)}**\n\n{markdown_table(chosen, STATISTICS[statistic])}")
    return "\n\n".join(parts) + "\n"


def mean_table(report: dict[str, Any], statistic: str = "median") -> str:
    """The geometric mean of each condition."""
    results = report["results"]
    rows = []
    for condition in conditions(results):
        chosen = [r for r in results if (r["threads"], r["load"], r["quota"]) == condition]
        rows.append(f"| {describe(*condition)} | {mean_ratio(chosen, STATISTICS[statistic]):.2f} |")
    head = f"| geometric mean of {len(by_network(results))} networks | OpenVINO / irexec |"
    return "\n".join([head, "| --- | ---: |", *rows])


def machine_line(machine: dict[str, Any], statistic: str, precision: str) -> str:
    flags = ", ".join(machine["flags"]) or "neither AVX2 nor AVX-512"
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    blas = f"; {machine['blas']}" if machine.get("blas") else ""
    return f"Batch 1, {precision}, {statistic} of warm runs. {machine['cpu']}, {machine['cores']} cores, {flags}; {versions}{blas}."


def markdown_table(results: Sequence[Result], statistic: Statistic = median) -> str:
    """Networks by columns; without OpenVINO there are no ratios, without ONNX Runtime no column for it."""
    networks = by_network(results)
    engines = [e for e in ("openvino", "onnxruntime", "irexec") if any(e in row for row in networks.values())]
    compared = "openvino" in engines and "irexec" in engines
    head = ["network", *(f"{_TITLES[e]} ms" for e in engines), *(["OpenVINO / irexec"] if compared else [])]
    head += [
        f"peak memory, MB: {_listed(engines)}",
        f"load + compile, s: {_listed(engines)}",
        f"first run, ms: {_listed(engines)}",
    ]
    rows = [_row(title, row, engines, compared, statistic) for title, row in networks.items()]
    if compared:
        rows.append(["geometric mean", *[""] * len(engines), f"{mean_ratio(results, statistic):.2f}", "", "", ""])
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


_TITLES = {"irexec": "irexec", "openvino": "OpenVINO", "onnxruntime": "ONNX Runtime"}


def _listed(engines: Sequence[str]) -> str:
    return " / ".join(_TITLES[engine] for engine in engines)


def _row(title: str, row: dict[str, Result], engines: Sequence[str], compared: bool, statistic: Statistic) -> list[str]:
    present = [row.get(engine) for engine in engines]
    times = [three_digits(statistic(r["ms"])) if r else "" for r in present]
    memory = " / ".join(f"{r['peak_mb']:.0f}" if r else "-" for r in present)
    load = " / ".join(f"{r['load_ms'] / 1000:.2f}" if r else "-" for r in present)
    first = " / ".join(three_digits(r["first_ms"]) if r else "-" for r in present)
    ratios = [f"{ratio(row, statistic):.2f}" if {"openvino", "irexec"} <= set(row) else ""] if compared else []
    return [title, *times, *ratios, memory, load, first]


def replaced(document: str, table: str, begin: str = BEGIN, end: str = END) -> str:
    """The document with the table between the markers.

    Raises:
        ValueError: the markers do not occur exactly once each, in their order.
    """
    if document.count(begin) != 1 or document.count(end) != 1 or document.index(begin) > document.index(end):
        raise ValueError(f"expected {begin} and {end} once each, in this order")
    before, rest = document.split(begin)
    return f"{before}{begin}\n\n{table.strip()}\n\n{end}{rest.split(end)[1]}"


def written(document: str, report: dict[str, Any], statistic: str) -> str:
    """The document with the means, if it has their markers, or else with the table."""
    if MEAN_BEGIN in document:
        return replaced(document, mean_table(report, statistic), MEAN_BEGIN, MEAN_END)
    return replaced(document, markdown(report, statistic))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path)
    parser.add_argument("--write", type=Path, nargs="+", default=[], metavar="DOCUMENT")
    parser.add_argument("--statistic", choices=STATISTICS, default="median")
    arguments = parser.parse_args()
    report = json.loads(arguments.results.read_text())
    documents = {path: written(path.read_text(), report, arguments.statistic) for path in arguments.write}
    for path, text in documents.items():
        path.write_text(text)
    if not documents:
        print(markdown(report, arguments.statistic), end="")


if __name__ == "__main__":
    main()
