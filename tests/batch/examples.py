"""The examples of the pages about many items and of samples/ray, on what is installed: a Ray cluster, Spark, servers behind a balancer.

What they write is compared with a bare loop over the same images.
"""

from __future__ import annotations

import importlib.util
import json
import os
import secrets
import shutil
import socket
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import irexec
from tests.docs.matching import matches, normal
from tests.docs.running import FailedExample, run_page
from tests.support.paths import ROOT

_PAGES: dict[str, dict[str, int]] = {
    "scale.md": {"classes.jsonl": 12, "ray.jsonl": 12, "scores": 12, "classes": 12, "spark-scores": 10, "spark-digits": 10},
    "commands/batch.md": {"classes.jsonl": 2},
    "commands/serve.md": {},
}  # fmt: skip
"""The pages, and what their examples write that can be compared: files, and how many images each has."""

_DIGITS = ROOT / "samples" / "digits"


def run(folder: Path, wanted: Collection[str] | None = None) -> int:
    """Run the examples that need only what is installed, or what is wanted; returns 1 where one is wrong."""
    reasons = {name: reason() for name, reason in _MISSING.items() if wanted is None or name in wanted}
    having = {name for name, reason in reasons.items() if not reason}
    problems = []
    with _environment(folder):
        for page in _PAGES:
            inside = folder / page.replace("/", "-")
            inside.mkdir()
            problems += _page(page, inside, having)
    for name, reason in reasons.items():
        if reason:
            print(f"not run: what needs {name}: {reason}")
    for problem in problems:
        print(f"PROBLEM: {problem}")
    return int(bool(problems))


def _page(page: str, folder: Path, having: set[str]) -> list[str]:
    text, problems, count = (ROOT / "docs" / page).read_text("utf-8"), [], 0
    try:
        for result in run_page(text, folder, having):
            count += 1
            if not matches(result.shown or "", result.actual):
                problems.append(
                    f"{page}:{result.line}: {result.what}\n--- shown\n{result.shown}\n--- actual\n{normal(result.actual)}"
                )
    except FailedExample as error:
        problems.append(f"{page}: {error}")
    written = [name for name in _PAGES[page] if (folder / name).exists()]
    problems += [
        f"{page}: {name}: {problem}" for name in written for problem in _compared(folder / name, _PAGES[page][name])
    ]
    print(f"{page}: {count} examples; compared with a loop: {', '.join(written) or 'nothing'}")
    return problems


def _compared(path: Path, count: int) -> list[str]:
    """What differs between a table of classes or probabilities and those of a loop over the images."""
    loop, problems = _loop(), []
    rows = _rows(path)
    if len(rows) != count:
        problems.append(f"has {len(rows)} images, expected {count}: {', '.join(sorted(rows))}")
    for name, found in rows.items():
        expected = loop[name]
        is_same = (
            int(found) == expected.argmax()
            if np.ndim(found) == 0
            else np.allclose(np.ravel(found), expected, rtol=1e-5, atol=1e-7)
        )
        if not is_same:
            problems.append(f"{name}: {found}, expected {expected}")
    return problems


def _rows(path: Path) -> dict[str, Any]:
    """The class of each image, or its probabilities, by the name of its file."""
    if path.suffix == ".jsonl":
        lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        return {Path(line["item"]).name: line["probabilities.class"][0] for line in lines}
    from pyarrow import parquet

    rows = parquet.read_table(path).to_pylist()
    return {
        Path(row.get("path") or row["name"]).name: row["digit"] if "digit" in row else row["probabilities"]
        for row in rows
    }


@cache
def _loop() -> dict[str, np.ndarray]:
    from PIL import Image

    compiled = irexec.compile_model(str(_DIGITS / "classifier.xml"))
    pixels = {file.name: np.asarray(Image.open(file), np.float32)[None, None] / 255 for file in _DIGITS.glob("*.png")}
    return {name: compiled(each)["probabilities"][0] for name, each in pixels.items()}


@contextmanager
def _environment(folder: Path) -> Iterator[None]:
    """A token for a cluster of our own, whose processes have the priority of this one; Spark's are of this Python."""
    token = folder / "token"
    token.write_text(secrets.token_hex(32))
    changed = {
        "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(token), "RAY_worker_niceness": "0", "RAY_USAGE_STATS_ENABLED": "0",
        "PYSPARK_PYTHON": sys.executable,
    }  # fmt: skip
    before = {name: os.environ.get(name) for name in changed}
    os.environ.update(changed)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


def _without_package(name: str, ports: Collection[int] = ()) -> str:
    """Why what needs a package is not run; "" if it is."""
    if importlib.util.find_spec(name) is None:
        return f"{name} is not installed"
    return _in_use(ports)


def _without_spark() -> str:
    if importlib.util.find_spec("pyspark") is None:
        return "pyspark is not installed"
    return "" if "JAVA_HOME" in os.environ or shutil.which("java") else "there is no Java virtual machine"


def _in_use(ports: Collection[int]) -> str:
    for port in ports:
        with socket.socket() as tried:
            if tried.connect_ex(("127.0.0.1", port)) == 0:
                return f"port {port} is in use"
    return ""


_MISSING: dict[str, Callable[[], str]] = {
    "ray": lambda: _without_package("ray", (6379,)),
    "serve": lambda: _without_package("kserve", (8080, 8081)),
    "tritonclient": lambda: _without_package("tritonclient"),
    "haproxy": lambda: _in_use((8000, 8090)) if shutil.which("haproxy") else "haproxy is not installed",
    "spark": _without_spark,
}
"""Why what needs some software is not run; "" where it can be."""
