"""Files that ONNX Runtime saves with ORT_ENABLE_ALL, converted and compared.

Each .onnx is optimised and saved by the installed ONNX Runtime, converted, and compared with it as ``irexec convert --verify`` does.
Without a folder the networks are those of tests.compare_sweep.onnx_networks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx

import converters
from converters.onnx.registry import NCHWC
from irexec import Model
from irexec.errors import IrexecError
from irexec.tools.verify import Verification, verify
from tests.compare_sweep import onnx_networks
from tests.sweep.kind import Case, Kind, Outcome, temporary


@dataclass(frozen=True)
class Optimized:
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


def check(source: Path, folder: Path) -> Optimized:
    """Optimise, convert and compare one file; IrexecError if it cannot be converted or run."""
    target = folder / f"{source.stem}.optimized.onnx"
    optimized(source, target)
    nodes = onnx.load(target, load_external_data=False).graph.node
    operators = Counter(f"{node.domain}.{node.op_type}" for node in nodes if node.domain)
    model = converters.convert(target, warn=lambda text: None)
    return Optimized(model, verify(model, runtime="onnxruntime", seed=0, rtol=1e-3, atol=1e-4), operators)


class Sweep(Kind):
    """Networks, or files."""

    cases = 1

    @classmethod
    def add_options(cls, add: Callable[..., Any]) -> None:
        add("--folder", type=Path, help="of .onnx files; default: the networks of tests.compare_sweep.onnx_networks")

    def names(self) -> list[str]:
        folder = self.options.folder
        return sorted(path.stem for path in folder.glob("*.onnx")) if folder else list(onnx_networks.NETWORKS)

    @contextmanager
    def opened(self, name: str) -> Iterator[Case]:
        """One file."""
        with temporary() as folder:

            def case(number: int) -> Iterator[Outcome]:
                source = (self.options.folder or folder) / f"{name}.onnx"
                if self.options.folder is None:
                    onnx.save(onnx_networks.model(name), source)
                try:
                    found = check(source, folder)
                except IrexecError as error:
                    yield Outcome(type(error).__name__, str(error), fails=True)
                    return
                text = f"{found.operators.total()} operators of ONNX Runtime"
                yield Outcome("agrees" if found.agrees else "differs", text, fails=not found.agrees)
                if any(operator.startswith(NCHWC) for operator in found.operators):
                    yield Outcome("with blocks of channels")

            yield case
