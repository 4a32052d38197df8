"""Verdicts as criteria of ``reduce``: a smaller model must get the same one."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace

import numpy as np

from irexec.analysis.model import Model
from irexec.analysis.shape_inference import infer_shapes
from irexec.bounds import Interval, Unbounded, arithmetic
from irexec.errors import IrexecError, RunTimeoutError
from irexec.ir.graph import Node, Value
from irexec.tools.commands import irexec_command
from irexec.tools.judge.evidence import Evidence
from irexec.tools.judge.judgement import Judgement, Verdict
from irexec.tools.judge.opponent import Opponent, Tensors
from irexec.tools.judge.options import JudgeOptions
from irexec.tools.judge.run import judge
from irexec.tools.observing.sides import ModelSide
from irexec.tools.reduce.candidate import Candidate
from irexec.tools.reduce.checks.check import Check, Failure, Files


def results_beside(
    candidate: Candidate, options: JudgeOptions, arithmetic_name: str, seen: Tensors | None = None
) -> list[tuple[np.ndarray | None, Interval | Unbounded]]:
    """The results of a model in the runtime, each beside its interval from the inputs of the model.

    Args:
        candidate: the model and its inputs.
        options: the runtime.
        arithmetic_name: the arithmetic that it is held to.
        seen: the results if they were recorded; they are not computed then.
    """
    model = candidate.model
    results = [value for node in model.results for value in node.inputs if value is not None]
    with ExitStack() as stack:
        opponent = Opponent(model, options, stack)
        given = opponent.observed([candidate.inputs], results)[0] if seen is None else seen
        facts = infer_shapes(model, tolerant=True).facts
        held = arithmetic(arithmetic_name, opponent.functions)
        evidence = Evidence(opponent, ModelSide("part", model, options.runtime), facts, held)
        inputs = {port.node.outputs[0]: candidate.inputs[port.name] for port in model.inputs}
        return [(given.get(value), evidence.bound(value, inputs)[0]) for value in results]


class OutsideCheck(Check):
    """Whether a result lies outside of its interval from the inputs of the candidate.

    Args:
        options: the runtime.
        arithmetic_name: the arithmetic that it is held to.
    """

    def __init__(self, options: JudgeOptions, arithmetic_name: str) -> None:
        self._options, self._arithmetic = options, arithmetic_name

    @property
    def identity(self) -> Sequence[object]:
        return ("outside", self._options.runtime, self._arithmetic)

    def __call__(self, candidate: Candidate) -> Failure | None:
        try:
            found = results_beside(candidate, self._options, self._arithmetic)
        except RunTimeoutError:
            raise
        except IrexecError:
            # The runtime does not take this part.
            return None
        for actual, bound in found:
            if actual is None or isinstance(bound, Unbounded) or bound.exact.shape != actual.shape:
                continue
            if bound.outside(actual).any():
                return Failure("outside", f"a result is outside of the interval of {self._arithmetic}")
        return None

    def command(self, files: Files) -> list[str]:
        return _command(self._options, files)


class VerdictCheck(Check):
    """Whether the judgement of a candidate has the same verdict, about a layer of the same type.

    Args:
        options: the runtime.
        wanted: the judgement of the whole model.
    """

    def __init__(self, options: JudgeOptions, wanted: Judgement) -> None:
        self._options = replace(options, arithmetic=wanted.arithmetic)
        self._verdict: Verdict = wanted.verdict
        self._types = tuple(sorted({one.layer.type for one in wanted.at[:1]}))
        self._names = {one.layer.name for one in wanted.at} | {name for one in wanted.at for name in one.region}
        self._starts: list[Node] = []

    @property
    def identity(self) -> Sequence[object]:
        return ("judge", self._options.runtime, self._verdict, *self._types)

    def reference(self, model: Model, inputs: Sequence[np.ndarray]) -> Mapping[Value, np.ndarray]:
        self._starts = [node for node in model.nodes if node.name in self._names]
        return {}

    def starts(self, reference: Collection[Value]) -> Sequence[Sequence[Node]]:
        return [self._starts] if self._starts else []

    def __call__(self, candidate: Candidate) -> Failure | None:
        try:
            found = judge(candidate.model, candidate.inputs, self._options)
        except RunTimeoutError:
            raise
        except IrexecError:
            return None
        types = tuple(sorted({one.layer.type for one in found.at[:1]}))
        return (
            Failure(found.verdict, found.sentence) if (found.verdict, types) == (self._verdict, self._types) else None
        )

    def command(self, files: Files) -> list[str]:
        return _command(self._options, files)


def _command(options: JudgeOptions, files: Files) -> list[str]:
    properties = [f"-p={name}={value}" for name, value in (options.properties or {}).items()]
    held = [f"--arithmetic={options.arithmetic}"] if options.arithmetic else []
    held += [f"--functions={options.functions}"] if options.functions else []
    return irexec_command("judge", files.model, *files.input_options, "--runtime", options.runtime, *properties, *held)
