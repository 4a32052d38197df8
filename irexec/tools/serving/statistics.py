"""Statistics of the requests and runs of a served model, with the names of Triton's statistics extension."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any


@dataclass
class _Duration:
    """A number of events and their nanoseconds."""

    count: int = 0
    ns: int = 0

    def add(self, ns: int, count: int = 1) -> None:
        self.count += count
        self.ns += ns

    def as_dict(self) -> dict[str, int]:
        return {"count": self.count, "ns": self.ns}


@dataclass
class ModelStatistics:
    """Counts and times of one model. All calls come from one event loop."""

    success: _Duration = field(default_factory=_Duration)
    fail: _Duration = field(default_factory=_Duration)
    compute: _Duration = field(default_factory=_Duration)
    items: int = 0
    runs: int = 0
    last: int = 0
    batches: dict[int, _Duration] = field(default_factory=dict)

    @contextmanager
    def request(self) -> Iterator[None]:
        """Count a request and the time from its arrival to its answer: a failure after an exception, else a success."""
        start = time.perf_counter_ns()
        self.last = time.time_ns() // 1_000_000
        try:
            yield
        except BaseException:
            self.fail.add(time.perf_counter_ns() - start)
            raise
        self.success.add(time.perf_counter_ns() - start)

    def ran(self, requests: int, items: int, seconds: float) -> None:
        """Counts a run of several requests, whose seconds are shared between them."""
        ns = round(seconds * 1e9)
        self.runs += 1
        self.items += items
        self.compute.add(ns, requests)
        self.batches.setdefault(items, _Duration()).add(ns)

    def as_dict(self, name: str, version: str) -> dict[str, Any]:
        """The statistics in the form of Triton's extension; queue time is the time of successes minus computing."""
        nothing = _Duration().as_dict()
        queue = _Duration(self.success.count, max(0, self.success.ns - self.compute.ns))
        return {
            "name": name,
            "version": version,
            "last_inference": self.last,
            "inference_count": self.items,
            "execution_count": self.runs,
            "inference_stats": {
                "success": self.success.as_dict(),
                "fail": self.fail.as_dict(),
                "queue": queue.as_dict(),
                "compute_input": nothing,
                "compute_infer": self.compute.as_dict(),
                "compute_output": nothing,
            },
            "batch_stats": [
                {
                    "batch_size": size,
                    "compute_input": nothing,
                    "compute_infer": one.as_dict(),
                    "compute_output": nothing,
                }
                for size, one in sorted(self.batches.items())
            ],
        }
