"""The result of a judgement."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from irexec.records import Record, Report
from irexec.tools.compare.comparison import ComparedLayer

Verdict = Literal["agrees", "bug", "fusion", "precision", "open", "model", "no-bound", "unexplained"]
Severity = Literal["", "minor", "major"]
State = Literal["inside", "outside", "known", "unconfirmed", "no bound"]


@dataclass(frozen=True)
class JudgedLayer(Record):
    """One tensor of the runtime beside the interval of its layer.

    Attributes:
        layer: the layer.
        state: "outside" is an accusation; "known": outside, and inside of the interval of what OpenVINO is known to do,
            for the reason of ``codes``; "unconfirmed": outside in the whole network, and not when the layer runs alone
            with the same inputs, or inside of an interval that is too wide to say anything, so that nobody is accused.
        outside, elements: number of elements outside of the interval, and of all.
        value, low, high: the worst element and its interval; None where no element is outside.
        position: the position of this element.
        reason: why a bound is missing, or where else the layer was outside.
        region: names of further layers whose tensors the runtime does not give, and which are judged with this one.
        codes: codes of the portability table: alternatives that the interval includes, or known differences of the
            layer; those of a layer that is outside do not explain its values.
        alone: whether the layer is also outside when it runs alone with the same inputs.
        free: number of elements that may be anything, since NaN, infinity or overflow reaches them.
        excess: the distance of the worst element from its interval, in radii of the interval; None inside.
        relative: the same distance, divided by the largest magnitude of the tensor; None inside.
        visible: whether an unconfirmed tensor differs visibly from irexec's with the same inputs.
        recorded: the name of the recorded tensor, such as "module:blocks.0#1[0]"; "" for a runtime.
    """

    layer: ComparedLayer
    state: State
    outside: int = 0
    elements: int = 0
    value: float | None = None
    low: float | None = None
    high: float | None = None
    position: tuple[int, ...] = ()
    reason: str = ""
    region: tuple[str, ...] = ()
    codes: tuple[str, ...] = ()
    alone: bool = False
    free: int = 0
    excess: float | None = None
    relative: float | None = None
    visible: bool = False
    recorded: str = ""


@dataclass(frozen=True)
class Bundle(Record):
    """Files that show a verdict.

    Attributes:
        folder: the folder.
        files: names of the files in it.
        before, after: number of layers of the model and of the smallest one, without Parameters, Constants and Results.
        kept: constants that keep their values, since the verdict needs them; None unless weights are stripped.
    """

    folder: str
    files: tuple[str, ...]
    before: int
    after: int
    kept: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Judgement(Report):
    """The verdict about a runtime.

    Attributes:
        model, runtime, version: names of both, and the version of the runtime.
        arithmetic: the arithmetic that it was held to.
        verdict: "agrees"; "bug": of the runtime; "fusion": a bug that is there only while inner tensors are not
            observed; "precision": all layers are correct, and the results still differ; "open": the specification
            leaves the difference open; "model": the model itself makes NaN or infinities; "no-bound": the results
            differ where no layer can be judged; "unexplained": tensors differ visibly, and nothing that is known of the
            layers explains it.
        sentence: the verdict in one sentence.
        at: the layers that the verdict names.
        layers: every tensor that was judged.
        differing: names of the results that differ visibly from irexec's.
        notes: unexpected facts.
        bundle: the files that show the verdict; None unless they are asked for.
        step, steps: the step that the verdict is about, from 1, and the number of steps.
        hidden: the size below which rounding may hide a fault of a single value, as a part of the largest value of its
            tensor; 0 where it is below a thousandth.
        severity: of a bug: "minor" where no value is visibly wrong, neither of the layers nor of the results, else
            "major"; "" without a bug.
    """

    model: str
    runtime: str
    version: str
    arithmetic: str
    verdict: Verdict
    sentence: str
    at: tuple[JudgedLayer, ...]
    layers: tuple[JudgedLayer, ...]
    differing: tuple[str, ...]
    notes: tuple[str, ...] = ()
    bundle: Bundle | None = None
    step: int = 1
    steps: int = 1
    severity: Severity = ""
    hidden: float = 0.0

    @property
    def is_bug(self) -> bool:
        """Whether the runtime is wrong."""
        return self.verdict in ("bug", "fusion")

    def count(self, state: State) -> int:
        """Number of tensors in a state."""
        return sum(one.state == state for one in self.layers)
