"""A Ray cluster of several nodes on this machine, of which one is killed during a job: the output must be that of this machine alone."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

from irexec.integrations.ray_data import RayActors, load_ray
from irexec.tools.batch.parts import BatchJob
from irexec.tools.batch.run import BatchOptions, BatchWatch, PartDone, run_job
from irexec.tools.images import ImageOptions
from tests.batch import data

_NODES = 2
"""Nodes of one processor each, beside the head node, which has none."""


def run(folder: Path, items: int) -> int:
    """Returns how many problems there are."""
    source, job = (
        data.images(folder / "images", items),
        BatchJob(model="samples/digits/classifier.xml", image=ImageOptions(scale=(255.0,))),
    )
    times = {}
    local = folder / "local.npz"
    times["local"] = _timed(lambda: run_job([str(source)], job, BatchOptions(output=str(local), jobs=_NODES)))
    # Ray gives its processes the lowest priority but four, so that they would wait for whatever else runs here.
    os.environ["RAY_worker_niceness"] = "0"  # noqa: SIM112
    ray = load_ray()
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    nodes = [cluster.add_node(num_cpus=1) for _ in range(_NODES)]
    try:
        for name, lost in (("cluster", None), ("cluster, one node lost", nodes[0])):
            output = folder / f"{name}.npz"
            watch = _Losing(cluster, lost, items // 2)
            times[name] = _timed(lambda output=output, watch=watch: run_job(
                [str(source)], job, BatchOptions(output=str(output), jobs=_NODES), BatchWatch(part=watch), lambda j, n: RayActors(j, n, cluster.address)
            )) - watch.began  # fmt: skip
            if output.read_bytes() != local.read_bytes():
                print(f"PROBLEM: {name}: the output is another")
                return 1
            ray.shutdown()
    finally:
        cluster.shutdown()
    for name, seconds in times.items():
        print(f"{name}: {seconds:.1f} s, {items / seconds:.0f} items/s")
    return _sample(folder)


def _sample(folder: Path) -> int:
    """The sample of a pipeline names every digit."""
    import pyarrow.parquet

    done = subprocess.run(
        [sys.executable, "samples/ray/classify.py", "samples/digits", str(folder / "classes")],
        capture_output=True,
        text=True,
    )
    if done.returncode:
        print(f"PROBLEM: samples/ray/classify.py: {done.stderr[-2000:]}")
        return 1
    rows = pyarrow.parquet.read_table(folder / "classes").to_pylist()
    wrong = [row for row in rows if "digit_" in row["path"] and f"digit_{row['digit']}.png" not in row["path"]]
    print(f"samples/ray/classify.py: {len(rows)} images, {len(wrong)} wrong")
    return int(bool(wrong) or len(rows) != 12)


class _Losing:
    """Kills a node when this number of items is done, and adds another a little later; counts the time until the first part is done."""

    def __init__(self, cluster: object, node: object, after: int) -> None:
        self._cluster, self._node, self._after, self._start, self.began = cluster, node, after, time.monotonic(), 0.0

    def __call__(self, part: PartDone) -> None:
        self.began = self.began or time.monotonic() - self._start
        if self._node is not None and part.done > self._after:
            node, self._node = self._node, None
            threading.Thread(target=self._lose, args=(node,)).start()

    def _lose(self, node: object) -> None:
        self._cluster.remove_node(node, allow_graceful=False)
        print("a node is lost")


def _timed(work: object) -> float:
    began = time.monotonic()
    work()
    return time.monotonic() - began
