"""Throughput of a batch job on many nodes, by a small simulation: what stragglers and lost nodes cost.

``python -m tests.benchmarks.cluster`` prints the table of docs/scale. Assumptions:

- A part takes every core the same time, spread by 5 % (normal); 1 of 20 nodes is slow, and takes half as long again for each part.
- A core takes the next part when it is free; starting takes each node 30 s once, and the part's data comes over the network
  while the part before is computed, as long as the storage can give all nodes together their bytes.
- A node is lost once in ``1 / loss`` node hours; its parts under way are done again by others, and it comes back after 5 minutes.
- The command that keeps the manifest takes 1 ms for each part.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np

_SPREAD, _SLOW_SHARE, _SLOWNESS = 0.05, 0.05, 1.5
_START, _RETURN, _COMMIT = 30.0, 300.0, 0.001


@dataclass(frozen=True)
class Cluster:
    """A cluster and a job.

    Attributes:
        nodes, cores: how many nodes, and cores of each.
        items: of the job.
        seconds: of an item on one core.
        part: items of a part.
        bytes: of an item, that come over the network.
        storage: bytes a second that the storage gives to all nodes together.
        loss: nodes lost in a node hour.
    """

    nodes: int
    cores: int
    items: int
    seconds: float
    part: int
    bytes: float
    storage: float
    loss: float


def simulate(cluster: Cluster, seed: int = 0) -> float:
    """Seconds until the last part is done."""
    random = np.random.default_rng(seed)
    waiting = -(-cluster.items // cluster.part)
    slow = random.random(cluster.nodes) < _SLOW_SHARE
    fetch = cluster.part * cluster.bytes / (cluster.storage / (cluster.nodes * cluster.cores))
    lost = [_loss(random, cluster.loss, 0.0) for _ in range(cluster.nodes)]
    # When each core is free, and its node.
    free = [(_START, node) for node in range(cluster.nodes) for _ in range(cluster.cores)]
    heapq.heapify(free)
    committed = end = 0.0
    while waiting:
        now, node = heapq.heappop(free)
        compute = (
            cluster.part * cluster.seconds * (_SLOWNESS if slow[node] else 1.0) * max(0.5, random.normal(1.0, _SPREAD))
        )
        done = now + max(compute, fetch)
        if lost[node] < done:
            # The part is done again by whoever is free next.
            heapq.heappush(free, (max(now, lost[node]) + _RETURN, node))
            if lost[node] + _RETURN < done:
                lost[node] = _loss(random, cluster.loss, lost[node] + _RETURN)
            continue
        waiting -= 1
        committed = max(committed, done) + _COMMIT
        end = max(end, committed)
        heapq.heappush(free, (done, node))
    return end


def _loss(random: np.random.Generator, rate: float, since: float) -> float:
    """When a node is lost next."""
    return since + float(random.exponential(3600 / rate)) if rate else float("inf")


def table(seconds: float = 0.05, items: int = 1_000_000) -> list[tuple[int, float, float, float]]:
    """Nodes of 16 cores, and ``items`` for each; items a second, the share of what all cores could do, and the hours of the job."""
    rows = []
    for nodes in (1, 10, 100, 1000):
        cluster = Cluster(nodes, 16, items * nodes, seconds, 256, 100e3, 10e9, 0.01)
        took = simulate(cluster)
        rate = cluster.items / took
        rows.append((nodes, rate, rate / (nodes * cluster.cores / seconds), took / 3600))
    return rows


if __name__ == "__main__":
    print("| nodes | items a second | of what all cores could do | hours |\n|---|---|---|---|")
    for nodes, rate, share, hours in table():
        print(f"| {nodes:,} | {rate:,.0f} | {share:.0%} | {hours:.1f} |")
