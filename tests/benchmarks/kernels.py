"""What the fast kernels of each layer of a network cost: estimated and measured, all candidates.

    python -m tests.benchmarks.kernels MODEL [--types Convolution ...] [--channels-last] [--chain] [--seconds 0.1] [--all]

One thread, the minimum of runs in turns, in time of the processor, which other processes change least, and scaled to
a machine whose matrix product has 100 GFLOP/s, as the estimates are. The summary says how often the cheapest candidate is the fastest, and what the layers
take with the selected and with the fastest candidates.
"""

from __future__ import annotations

import argparse
import dataclasses
import math
import time
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

import irexec
from irexec.analysis.attributes import typed_attributes
from irexec.analysis.shape_inference import infer_shapes
from irexec.backend.constants import ConstantSource, ConstantStore
from irexec.backend.kernel import Kernel, KernelContext, Task
from irexec.ir.facts import Fact
from irexec.schema.registry import resolve
from irexec.testing.kernels import candidates, in_order
from tests.support.convolutions import bias_residual_relu, operands_of, orders_of

# A candidate counts as the fastest if it takes at most this much longer.
_TIE = 1.05
# Of the product that the machine's speed is measured by.
_SIZE = 384
_PRODUCTS = ("Convolution", "GroupConvolution", "ConvolutionBackpropData", "GroupConvolutionBackpropData")


def tasks(path: str, types: Sequence[str]) -> Iterator[tuple[Task, int]]:
    """The different tasks of a model's layers of these types, and how many layers each has."""
    model = irexec.read_model(path)
    facts = infer_shapes(model)
    counted: Counter[str] = Counter()
    made: dict[str, Task] = {}
    for node in model.nodes:
        if node.type not in types:
            continue
        definition = resolve(node.type, node.version)
        inputs = tuple(Fact(None, None) if v is None else Fact(facts[v].element, facts[v].shape) for v in node.inputs)
        known = [v is not None and v.node.type == "Constant" for v in node.inputs]
        outputs = tuple(Fact(facts[v].element, facts[v].shape) for v in node.outputs)
        arguments = definition.arguments(typed_attributes(node, definition).require())
        sources = [_source(fact) if is_known else None for fact, is_known in zip(inputs, known, strict=True)]
        key = f"{node.type} {inputs} {known} {node.attributes}"
        counted[key] += 1
        made[key] = Task(
            definition, arguments, inputs, tuple(sources), outputs, (True,) * len(outputs), input_orders=(None,) * len(inputs),
            output_orders=(None,) * len(outputs),
        )  # fmt: skip
    for key, task in made.items():
        yield task, counted[key]


def _source(fact: Fact) -> ConstantSource:
    made = _random(fact)
    return ConstantSource.of(made, fact.element)


def _random(fact: Fact) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(fact.shape, np.float32).astype(fact.element.carrier)


def with_layout(task: Task, channels_last: bool, chain: bool) -> Task:
    rank = len(task.output_shape())
    order = orders_of(rank)[channels_last]
    if chain:
        operands = operands_of(task.output_shape(), np.dtype(np.float32), np.random.default_rng(0))
        facts = tuple(Fact(task.outputs[0].element, x.shape) for x in operands)
        task = dataclasses.replace(task, chain=bias_residual_relu(), operands=facts)
    inputs = len(task.inputs) + len(task.operands)
    return dataclasses.replace(task, input_orders=(order,) + (None,) * (inputs - 1), output_orders=(order,))


class Candidate:
    """A kernel, ready to run."""

    def __init__(self, kernel: Kernel, task: Task) -> None:
        self.kernel, self.best = kernel, math.inf
        kernel.pack(ConstantStore())
        order = task.output_orders[0]
        inputs = [None if fact.element is None else _random(fact) for fact in task.inputs]
        inputs[0] = in_order(inputs[0], task.input_orders[0])
        operands = (
            operands_of(task.output_shape(), np.dtype(np.float32), np.random.default_rng(0)) if task.chain else []
        )
        self.inputs = [*inputs, *(in_order(x, order) for x in operands)]
        self.outputs = [in_order(np.empty(task.output_shape(), np.float32), order)]
        self.context = KernelContext.of(kernel, 1)

    def run(self) -> None:
        start = time.thread_time()
        self.kernel.run(self.inputs, self.outputs, self.context)
        self.best = min(self.best, time.thread_time() - start)


class Yardstick:
    """A product that fits into the second-level cache, whose rate says how fast the machine is at the moment."""

    def __init__(self) -> None:
        self.a, self.b = (np.random.default_rng(0).standard_normal((_SIZE, _SIZE), np.float32) for _ in range(2))
        self.out, self.best = np.empty_like(self.a), math.inf

    def run(self) -> None:
        start = time.thread_time()
        np.matmul(self.a, self.b, out=self.out)
        self.best = min(self.best, time.thread_time() - start)

    @property
    def speed(self) -> float:
        """Of the machine, relative to one whose product has 100 GFLOP/s."""
        return 2e-11 * _SIZE**3 / self.best


def measure(found: Sequence[Candidate], seconds: float) -> None:
    """Run them in turns, for about so long in all; ``best`` is then the time on a machine whose product has 100 GFLOP/s."""
    yardstick = Yardstick()
    everyone = [yardstick, *found]
    for one in everyone:
        one.run()
        one.best = math.inf
    end = time.perf_counter() + seconds * len(found)
    runs = 0
    while runs < 3 or time.perf_counter() < end:
        for one in everyone:
            one.run()
        runs += 1
    for candidate in found:
        candidate.best *= yardstick.speed


def describe(task: Task) -> str:
    attributes = task.attributes["attributes"]
    strides = "x".join(map(str, attributes.strides))
    return f"{task.definition.type[:12]} {'x'.join(map(str, task.shape(0)[1:]))} * {'x'.join(map(str, task.shape(1)))} / {strides}"


def macs(task: Task) -> int:
    outputs, weights = task.output_shape(), task.shape(1)
    if "Backprop" in task.definition.type:
        return math.prod(task.shape(0)) // task.shape(0)[1] * math.prod(weights)
    return math.prod(outputs) // outputs[1] * math.prod(weights)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("--types", nargs="*", default=_PRODUCTS)
    parser.add_argument("--channels-last", action="store_true")
    parser.add_argument("--chain", action="store_true", help="with a bias, a residual and a ReLU")
    parser.add_argument("--seconds", type=float, default=0.1, help="for each candidate")
    parser.add_argument("--all", action="store_true", help="show all candidates, not only the selected and the fastest")
    arguments = parser.parse_args()
    total, chosen, best, right, layers = 0.0, 0.0, 0.0, 0, 0
    for task, count in tasks(arguments.model, arguments.types):
        task = with_layout(task, arguments.channels_last, arguments.chain)
        found = [Candidate(kernel, task) for kernel in sorted(candidates(task), key=lambda kernel: kernel.cost)]
        if not found:
            continue
        measure(found, arguments.seconds)
        fastest = min(found, key=lambda candidate: candidate.best)
        is_right = found[0].best <= _TIE * fastest.best
        work = macs(task)
        print(f"{count:3} x {describe(task):60} {work / 1e6:8.1f} M {'' if is_right else '  NOT THE FASTEST'}")
        for candidate in found:
            if arguments.all or candidate is found[0] or candidate is fastest:
                kernel, taken = candidate.kernel, candidate.best
                rate = 2 * work / taken / 1e9
                print(
                    f"      {kernel.algorithm:32} cost {kernel.cost / 1e3:8.0f} us  measured {taken * 1e6:8.0f} us  {rate:6.0f} GFLOP/s"
                )
        layers, right = layers + count, right + count * is_right
        chosen, best, total = chosen + count * found[0].best, best + count * fastest.best, total + count * work
    rate = 2 * total / max(chosen, 1e-9) / 1e9
    print(
        f"{layers} layers, the cheapest is the fastest for {right}; selected {chosen * 1e3:.1f} ms ({rate:.0f} GFLOP/s), fastest {best * 1e3:.1f} ms"
    )


if __name__ == "__main__":
    main()
