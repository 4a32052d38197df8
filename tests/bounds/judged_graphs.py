"""Random graphs judged in another runtime, as `irexec judge` does; an accusation is to be checked by hand.

    python -m tests.bounds.judged_graphs [--seed N] [--cases 300] [--runtime openvino|onnxruntime]

ONNX Runtime gets the graph as irexec exports it. Prints the seed and the sentence of each accusation, and how many
graphs had each verdict. A graph is made anew from its seed, and written by `--write SEED FOLDER`. Exit 1 for an
accusation.
"""

from __future__ import annotations

import argparse
import functools
import sys
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np

from irexec import save_model
from irexec.api import to_onnx
from irexec.errors import IrexecError, UnsupportedError
from irexec.tools.engines.runtimes import Worker, open_runtime
from irexec.tools.judge import Judgement, JudgeOptions, judge, opponent
from tests.graphs.making import make

_ACCUSATIONS = ("bug", "fusion")
_TIMEOUT = 60.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=int, default=300)
    parser.add_argument("--runtime", default="openvino", choices=("openvino", "onnxruntime"))
    parser.add_argument("--write", nargs=2, metavar=("SEED", "FOLDER"))
    args = parser.parse_args()
    if args.write:
        return _write(int(args.write[0]), Path(args.write[1]))
    # One process of the runtime for all graphs: to start it takes longer than a run.
    opponent.open_runtime = functools.partial(open_runtime, worker=Worker(args.runtime, _TIMEOUT))  # type: ignore[attr-defined]
    counts: Counter[str] = Counter()
    for seed in range(args.seed * 1_000_000, args.seed * 1_000_000 + args.cases):
        try:
            found = _judged(seed, args.runtime)
        except IrexecError as error:
            counts[f"refused: {type(error).__name__}"] += 1
            continue
        counts[found.verdict] += 1
        if found.verdict in _ACCUSATIONS:
            print(f"seed {seed}: {found.verdict}: {found.sentence}", flush=True)
    print(dict(counts))
    return int(any(counts[one] for one in _ACCUSATIONS))


def _judged(seed: int, runtime: str) -> Judgement:
    made = make(seed)
    options = JudgeOptions(runtime=runtime, timeout=_TIMEOUT)
    if runtime == "openvino":
        names = [port.name for port in made.model.inputs]
        return judge(made.model, dict(zip(names, made.runs[0], strict=True)), options)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "graph.onnx"
        proto = to_onnx(made.model)
        path.write_bytes(proto.SerializeToString())
        if len(proto.graph.input) != len(made.runs[0]):
            raise UnsupportedError("a state is an input of the exported graph")
        return judge(path, dict(zip([one.name for one in proto.graph.input], made.runs[0], strict=True)), options)


def _write(seed: int, folder: Path) -> int:
    """Write the graph of a seed and the inputs of its first run."""
    made = make(seed)
    folder.mkdir(parents=True, exist_ok=True)
    save_model(made.model, folder / "graph.xml")
    names = [port.name for port in made.model.inputs]
    np.savez(folder / "inputs.npz", **dict(zip(names, made.runs[0], strict=True)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
