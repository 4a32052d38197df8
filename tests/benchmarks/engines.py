"""The engines of ``irexec bench`` with the models and inputs of the benchmark."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from irexec.tools.engines.engine import LOADERS, EngineJob, Feeds, Run, peak_bytes


def peak_megabytes() -> float:
    """The largest resident size so far."""
    return peak_bytes() / (1 << 20)


def resident_megabytes() -> float:
    """The resident size now; only where there is /proc."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def random_feeds(path: Path, seed: int = 7) -> dict[str, np.ndarray]:
    """Inputs by name, as the .json beside the .xml says: integers where the model has them."""
    rng = np.random.default_rng(seed)
    feeds = {}
    for spec in json.loads(path.with_suffix(".json").read_text())["runs"][0]:
        if spec["values"] is not None:
            feeds[spec["name"]] = np.array(spec["values"], np.int64)
        elif spec["integer"]:
            feeds[spec["name"]] = rng.integers(spec["low"], spec["high"], spec["shape"])
        else:
            feeds[spec["name"]] = rng.uniform(spec["low"], spec["high"], spec["shape"]).astype(np.float32)
    return feeds


def job(engine: str, model: Path, threads: int | None, inputs: Path | None = None, **options: Any) -> EngineJob:
    """What a process is to load: ONNX Runtime takes the .onnx beside the model."""
    file = model.with_suffix(".onnx") if engine == "onnxruntime" else model
    return EngineJob(engine, str(file), "" if inputs is None else str(inputs), threads=threads, options=options)


def load(engine: str, model: Path, threads: int | None, **options: Any) -> Run:
    """Load a model in this process; options are those of irexec.compile_model, or properties of OpenVINO's CPU plugin."""
    feeds: Feeds = {}
    return LOADERS[engine](job(engine, model, threads, **options), feeds)


def prepare(engine: str) -> None:
    """Import the engine: that is not part of loading a model."""
    __import__(engine)
