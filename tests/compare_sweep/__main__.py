"""The sweep: see tests.compare_sweep."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from tests.compare_sweep import ir
from tests.compare_sweep.ir import Count, Network
from tests.compare_sweep.report import print_line


def main() -> int:
    """Print a line for each network; 1 if a layer was not found."""
    parser = argparse.ArgumentParser(description="random changes that irexec compare has to find")
    parser.add_argument("kind", choices=["ir", "onnx", "openvino", "exporters"], default="ir", nargs="?")
    parser.add_argument("--networks", help="names, with commas between them")
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", help="of exporters: where the pairs of .onnx and .xml are")
    parser.add_argument("--renamed", action="store_true", help="other names, ids and order in the copy")
    arguments = parser.parse_args()
    if arguments.kind == "onnx":
        from tests.compare_sweep import onnx as kind

        return kind.sweep(arguments)
    if arguments.kind == "exporters":
        from tests.compare_sweep import exporters as kind

        return kind.sweep(arguments)
    if arguments.kind == "openvino":
        from tests.compare_sweep import openvino as kind

        return kind.sweep()
    names = arguments.networks.split(",") if arguments.networks else list(ir.NETWORKS)
    total = Count()
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            start = time.monotonic()
            network, count = Network.kept(name, Path(folder)), Count()
            for seed in range(arguments.seed, arguments.seed + arguments.trials):
                ir.trial(network, np.random.default_rng(seed), arguments.renamed, count)
            print_line(name, ir.NETWORKS.get(name, ""), count, time.monotonic() - start)
            total.right += count.right
            total.wrong += count.wrong
    print(f"{total.right} right, {len(total.wrong)} wrong")
    return 1 if total.wrong else 0


sys.exit(main())
