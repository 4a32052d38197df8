"""Files that ONNX Runtime saves with ORT_ENABLE_ALL: ``python -m tests.optimized_sweep [FILES or FOLDERS] [--networks NAMES]``.

Each .onnx is optimised and saved by the installed ONNX Runtime, converted, and compared with it as ``irexec convert --verify`` does.
Without files the networks are those of tests.compare_sweep.onnx_networks.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import onnx

import converters
from converters.onnx.registry import NCHWC
from irexec import Model
from irexec.errors import IrexecError
from irexec.tools.verify import Verification, verify
from tests.compare_sweep import onnx_networks


@dataclass(frozen=True)
class Outcome:
    """The converted model, the comparison and the operators that are not of ai.onnx, counted."""

    model: Model
    verification: Verification
    operators: Counter[str]

    @property
    def agrees(self) -> bool:
        """True if outputs agree, or differ by the rounding of their largest values."""
        return all(one.agrees or (one.relative or 1) < 1e-6 for one in self.verification.agreements)


def optimized(source: Path, target: Path) -> None:
    """Save ``source`` as ONNX Runtime runs it on this processor."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.optimized_model_filepath = str(target)
    options.log_severity_level = 4
    onnxruntime.InferenceSession(str(source), options, providers=["CPUExecutionProvider"])


def check(source: Path, folder: Path) -> Outcome:
    """Optimise, convert and compare one file; IrexecError if it cannot be converted or run."""
    target = folder / f"{source.stem}.optimized.onnx"
    optimized(source, target)
    nodes = onnx.load(target, load_external_data=False).graph.node
    operators = Counter(f"{node.domain}.{node.op_type}" for node in nodes if node.domain)
    model = converters.convert(target, warn=lambda text: None)
    return Outcome(model, verify(model, runtime="onnxruntime", seed=0, rtol=1e-3, atol=1e-4), operators)


def _sources(given: list[str], names: str | None, folder: Path) -> Iterator[Path]:
    for path in map(Path, given):
        yield from sorted(path.glob("*.onnx")) if path.is_dir() else [path]
    for name in (names.split(",") if names else onnx_networks.NETWORKS) if names or not given else ():
        path = folder / f"{name}.onnx"
        onnx.save(onnx_networks.model(name), path)
        yield path


def main() -> int:
    """Print a line for each network; 1 if one does not agree."""
    parser = argparse.ArgumentParser(description="files of ORT_ENABLE_ALL, converted and compared")
    parser.add_argument("files", nargs="*", help=".onnx files, or folders of them")
    parser.add_argument("--networks", help="of tests.compare_sweep.onnx_networks, with commas between them")
    arguments = parser.parse_args()
    agree, blocked, wrong = 0, 0, 0
    with tempfile.TemporaryDirectory() as folder:
        for source in _sources(arguments.files, arguments.networks, Path(folder)):
            try:
                outcome = check(source, Path(folder))
            except IrexecError as error:
                wrong += 1
                print(f"{source.stem}: {type(error).__name__}: {error}", flush=True)
                continue
            agrees, many = outcome.agrees, sum(outcome.operators.values())
            has_blocks = any(name.startswith(NCHWC) for name in outcome.operators)
            agree, blocked, wrong = agree + agrees, blocked + has_blocks, wrong + (not agrees)
            print(f"{source.stem}: {'agrees' if agrees else 'DIFFERS'}, {many} operators of ONNX Runtime", flush=True)
    print(f"{agree} agree, {wrong} do not; {blocked} with blocks of channels")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
