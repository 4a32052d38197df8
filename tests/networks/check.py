"""Compare irexec with OpenVINO on whole networks: ``python -m tests.networks.check DIR [names] [--times] [--trace]``.

For each IR that tests.networks.build left in DIR: irexec.validate finds no error, and every run gives
what OpenVINO gives at f32, state included. ``--trace`` names the first layers that differ, ``--times``
measures the last run. Needs openvino.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import numpy as np
import openvino as ov
from openvino import opset13

import irexec
from tests.support.networks import difference, feeds

LIMIT = 1e-3
_UNPACKING = ("Convert", "Subtract", "Multiply", "Reshape")


@dataclass
class Outcome:
    """What came of one network.

    Attributes:
        error: the largest difference over all runs, relative to the largest value of its output.
        problems: findings of severity error, refusals, differences of shape.
        failing: the first run that differs.
    """

    name: str
    error: float = 0
    problems: list[str] = field(default_factory=list)
    failing: int | None = None

    @property
    def good(self) -> bool:
        return not self.problems and self.error < LIMIT


def oracle(model: ov.Model | Path, threads: int) -> Callable[[list[np.ndarray]], list[np.ndarray]]:
    """OpenVINO's CPU plugin at f32, with a state of its own.

    What is written is computed: FakeQuantize not in 8 bits, and weights that are unpacked in f16 rounded to f16,
    which the plugin alone would leave out.
    """
    options = {
        "INFERENCE_PRECISION_HINT": "f32",
        "INFERENCE_NUM_THREADS": threads,
        "KV_CACHE_PRECISION": "f32",
        "LP_TRANSFORMS_MODE": "NO",
    }
    options |= {"DYNAMIC_QUANTIZATION_GROUP_SIZE": 0}
    compiled = ov.Core().compile_model(unpacked(model), "CPU", options)
    request = compiled.create_infer_request()

    def run(inputs: list[np.ndarray]) -> list[np.ndarray]:
        request.infer(inputs)
        return [np.array(request.get_output_tensor(i).data) for i in range(len(compiled.outputs))]

    return run


def unpacked(model: ov.Model | Path) -> ov.Model:
    """The model with its compressed weights computed by OpenVINO's references, in the types as written."""
    if isinstance(model, Path):
        model = ov.Core().read_model(model)
    for node in model.get_ordered_ops():
        sources = [value.get_node() for value in node.input_values()]
        if node.get_type_name() in _UNPACKING and all(source.get_type_name() == "Constant" for source in sources):
            found = ov.Tensor(node.get_output_element_type(0), node.get_output_shape(0))
            if node.evaluate(
                [found],
                [ov.Tensor(source.data, source.get_output_shape(0), source.get_element_type()) for source in sources],
            ):
                node.output(0).replace(opset13.constant(found).output(0))
    return model


def check(path: Path, threads: int, optimize: bool = True) -> tuple[Outcome, Callable[[], tuple[float, float]] | None]:
    """Validate and run one network on both sides; also a function that measures the last run."""
    outcome = Outcome(path.stem)
    try:
        model = irexec.read_model(path)
        outcome.problems += [
            f"{finding.code} layer {finding.layer_id} {finding.layer_type}: {finding.message}"
            for finding in irexec.validate(model)
            if finding.severity == "error"
        ]
        ours = irexec.compile_model(model, threads=threads, optimize=optimize, precision="as-written")
        theirs = oracle(path, threads)
        runs = feeds(path, ours.inputs)
        for i, inputs in enumerate(runs):
            expected = theirs(inputs)
            for j, (a, b) in enumerate(zip(ours(inputs).values(), expected, strict=True)):
                error = difference(a, b)
                outcome.error = max(outcome.error, error)
                if not error < LIMIT:
                    outcome.failing = i if outcome.failing is None else outcome.failing
                    outcome.problems.append(
                        f"run {i}, output {j}: differs by {error:.2g}, {a.dtype}{list(a.shape)} against {b.dtype}{list(b.shape)}"
                    )
    except (irexec.IrexecError, RuntimeError) as error:
        outcome.problems.append(f"{type(error).__name__}: {str(error)[:600]}")
        return outcome, None
    return outcome, lambda: (milliseconds(lambda: ours(runs[-1])), milliseconds(lambda: theirs(runs[-1])))


def milliseconds(run: Callable[[], object], budget: float = 2.0) -> float:
    """The median of what fits the budget of seconds, at least five runs, after two."""
    for _ in range(2):
        run()
    times: list[float] = []
    end = time.perf_counter() + budget
    while len(times) < 5 or (time.perf_counter() < end and len(times) < 50):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return median(times) * 1000


def trace(path: Path, threads: int, failing: int, most: int = 5) -> None:
    """Print the first layers whose outputs differ in a run, with their error and what they are."""
    theirs = ov.Core().read_model(path)
    ours = irexec.compile_model(irexec.read_model(path), threads=threads, precision="as-written")
    by_name = {node.name: node for node in ours.model.nodes}
    pairs = []
    for op in theirs.get_ordered_ops():
        node = by_name.get(op.friendly_name)
        if node is None or op.get_type_name() in ("Parameter", "Constant", "Result", "Assign", "ReadValue"):
            continue
        read = [
            any(port.get_node().get_type_name() == "Result" for port in output.get_target_inputs())
            for output in op.outputs()
        ]
        pairs += [(node, i, output) for i, output in enumerate(op.outputs()) if not read[i]]
    count = len(theirs.outputs)
    theirs.add_outputs([output for _, _, output in pairs])
    run = oracle(theirs, threads)
    for inputs in feeds(path, ours.inputs)[: failing + 1]:
        expected = run(inputs)[count:]
        found = ours.values(inputs, [node.outputs[i] for node, i, _ in pairs])
    for (node, i, _), a, b in zip(pairs, found, expected, strict=True):
        error = difference(a, b)
        if error > LIMIT / 10 and most:
            most -= 1
            print(
                f"  {node.id} {node.name} ({node.type}:{i} {node.attributes}): {error:.2g}, {a.dtype}{list(a.shape)} against {b.dtype}{list(b.shape)}"
            )
            worst = (
                np.argsort(-np.abs(a - b), axis=None)[:6] if a.shape == b.shape and a.dtype.kind == "f" else slice(6)
            )
            print(f"    ours {a.ravel()[worst]} theirs {b.ravel()[worst]}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", help="networks, or beginnings of their names; all unless given")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--plain", action="store_true", help="irexec without its fast kernels")
    parser.add_argument("--times", action="store_true")
    parser.add_argument("--trace", action="store_true")
    arguments = parser.parse_args()
    paths = [
        p
        for p in sorted(arguments.folder.glob("*.xml"))
        if not arguments.names or p.stem.startswith(tuple(arguments.names))
    ]
    failed = 0
    for path in paths:
        outcome, measure = check(path, arguments.threads, not arguments.plain)
        times = ""
        if arguments.times and measure is not None:
            ours, theirs = measure()
            times = f"{ours:9.2f} ms {theirs:9.2f} ms {ours / theirs:7.2f}"
        print(f"{path.stem:24} {'ok' if outcome.good else 'DIFFERS':8} {outcome.error:8.1e} {times}", flush=True)
        for problem in outcome.problems[:4]:
            print(f"    {problem}")
        if arguments.trace and measure is not None and not outcome.good:
            trace(path, arguments.threads, outcome.failing or 0)
        failed += not outcome.good
    print(f"{len(paths) - failed} of {len(paths)} networks agree")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
