"""The command line of the long tests."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.batch import ends, memory, speed


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.batch", description=__doc__)
    parser.add_argument("what", choices=["ends", "speed", "memory", "weights", "ray", "examples", "spark"])
    parser.add_argument("--items", type=int, default=20_000, help="of ends; default: 20000")
    parser.add_argument("--ends", type=int, default=30, help="how often the job is ended; default: 30")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3, help="of speed, of which the fastest counts; default: 3")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if options.what == "ends":
            return ends.run(folder, options.items, options.ends, options.seed)
        if options.what == "speed":
            return speed.run(folder, options.rounds)
        if options.what in ("examples", "spark"):
            from tests.batch import examples

            return examples.run(folder, None if options.what == "examples" else ("spark",))
        if options.what == "ray":
            from tests.batch import cluster

            return cluster.run(folder, options.items)
        return memory.flat(folder) if options.what == "memory" else memory.shared(folder)


if __name__ == "__main__":
    sys.exit(main())
