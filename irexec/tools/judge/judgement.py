"""A judgement: its options, its result, and the contents of the result."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from irexec.compile.passes.quantise_activations import check_group, is_group
from irexec.display import Column, Content, Table, Text, sections_of
from irexec.messages import counted, listed
from irexec.records import Record, Report
from irexec.tools.compare.comparison import ComparedLayer
from irexec.tools.compare.options import CompareOptions
from irexec.tools.engines.runtimes import DYNAMIC_QUANTIZATION, RUNTIMES
from irexec.tools.engines.runtimes.caches import CacheTypes, cache_types
from irexec.tools.observing.sides import is_recorded
from irexec.tools.run.shapes import Shapes

Verdict = Literal["agrees", "bug", "fusion", "precision", "open", "model", "no-bound", "unexplained"]
Severity = Literal["", "minor", "major"]
State = Literal["inside", "outside", "known", "unconfirmed", "no bound"]
_NAMES = 5
_FAR = 1e6
"""Number of radii above which the exact number says nothing further."""
_STATES: Mapping[State, str] = {
    "inside": "inside", "outside": "outside", "known": "at known differences",
    "unconfirmed": "unconfirmed", "no bound": "without a bound",
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class StepOptions:
    """The inputs and the state of the steps that a model runs.

    Attributes:
        weights: the .bin of the model; None is the file of the model's name.
        shapes: new shapes of inputs by name; None is the only input.
        seed: seed of random inputs.
        steps: number of runs one after the other, with state from step to step; None is 2 for a model with state that
            is not recorded, else 1. Where it is given, a source of arrays may have those of each step, see
            ``sources_of_step``.
        load_state: a .npz with the arrays of variables before the first step, by variable_id.
        threads, max_memory: as for open_runtime.
    """

    weights: str | None = None
    shapes: Shapes | None = None
    seed: int = 0
    steps: int | None = None
    load_state: str | None = None
    threads: int | None = None
    max_memory: int | None = None


@dataclass(frozen=True, kw_only=True)
class JudgeOptions(StepOptions):
    """How a runtime is judged, and its steps.

    Attributes:
        runtime: the runtime, see irexec.tools.engines.runtimes.open_runtime, or the path of recorded tensors: a .npz,
            or a folder of ``infer --dump-layers``.
        properties: of OpenVINO's plugin, by name.
        arithmetic: a name of irexec.bounds.ARITHMETICS; by default that of the runtime.
        functions: a name of irexec.bounds.FUNCTIONS; by default "ieee" for runtimes of CPUs, and "opencl" for others,
            such as recordings that do not say their device.
        timeout, environments: as for open_runtime.
        dynamic_quantization: size of the groups in which the runtime may quantise rows that are multiplied by
            compressed weights; OpenVINO and irexec are asked to. By default that of the property of OpenVINO.

    Others are those of StepOptions.
    """

    runtime: str = "openvino"
    properties: Mapping[str, str] | None = None
    arithmetic: str | None = None
    functions: str | None = None
    timeout: float | None = None
    environments: str | None = None
    dynamic_quantization: int | None = None

    @property
    def group(self) -> int | None:
        """Size of the groups in which the runtime may quantise rows; None where it does not.

        Raises:
            InputError: it is not a size that irexec has.
        """
        given = (self.properties or {}).get(DYNAMIC_QUANTIZATION, "")
        if self.dynamic_quantization is None and given.isdecimal() and is_group(int(given)):
            return int(given)
        return check_group(self.dynamic_quantization) or None

    @property
    def caches(self) -> CacheTypes | None:
        """How OpenVINO is asked to hold caches of attention."""
        return cache_types(self.properties or {})

    @property
    def is_recorded(self) -> bool:
        """Whether the runtime is a recording. A folder may have the name of a runtime: ./irexec is one of tensors."""
        return self.runtime not in RUNTIMES and is_recorded(Path(self.runtime))

    @property
    def running(self) -> CompareOptions:
        """The options of runs of single layers."""
        return CompareOptions(
            b_runtime=self.runtime,
            properties=self.properties,
            threads=self.threads,
            max_memory=self.max_memory,
            timeout=self.timeout,
            environments=self.environments,
            dynamic_quantization=self.group,
        )


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


@sections_of.register
def _(found: Judgement) -> Iterable[Content]:
    return [judgement_sections(found), [Text(note, "note") for note in found.notes]]


def judgement_sections(found: Judgement, shows_all: bool = False) -> Iterator[Content]:
    """The verdict and its layers; ``shows_all``: every tensor."""
    version = f" {found.version}" if found.version else ""
    yield Text(found.sentence, "" if found.verdict == "agrees" else "error")
    if text := _severity(found):
        yield text
    if one := next((one for one in found.at if one.region), None):
        yield f"  judged together with {listed(one.region, _NAMES)}, which cannot be observed"
    if found.verdict == "bug" and not found.at[0].alone:
        yield "  the layer alone was not run, or does not show it"
    if shows_all or len(found.at) > 1:
        yield layers_table(found.layers if shows_all else found.at)
    counts = ", ".join(f"{found.count(state)} {text}" for state, text in _STATES.items() if found.count(state))
    held = f"{counted(len(found.layers), 'tensor')} of {found.runtime}{version} in {found.arithmetic}"
    yield f"{held}: {counts or 'none'}"
    types = sorted({one.layer.type for one in found.layers if one.state == "no bound"})
    if types:
        yield f"without a bound, and never accused: {listed(types, _NAMES)}"
    if found.bundle is not None:
        kept = found.bundle.kept
        weights = "" if kept is None else f"; weights are random{', except of ' + listed(kept, _NAMES) if kept else ''}"
        layers = f"{found.bundle.after} of {counted(found.bundle.before, 'layer')}"
        yield f"{found.bundle.folder}: {layers}, {listed(found.bundle.files, 6)}{weights}"
    if found.differing:
        yield f"results that differ visibly: {listed(found.differing, _NAMES)}"


def _severity(found: Judgement) -> str:
    """How far the first accused layer is outside, and whether it matters; empty without a bug or a number."""
    one = found.at[0] if found.is_bug and found.at else None
    if one is None or one.excess is None or one.relative is None:
        return ""
    away = f"{one.excess:.2g} times its radius" if one.excess < _FAR else "far"
    effect = "; results differ visibly" if found.differing else ""
    if found.severity == "minor":
        effect = "; no value differs visibly"
    return f"  {away} outside of its interval, by {one.relative:.1e} of the tensor's largest value{effect}"


def layers_table(layers: Sequence[JudgedLayer]) -> Table:
    """Tensors and their states."""
    columns = [
        Column("id", lambda one: one.layer.id, "number"),
        Column("layer", lambda one: one.layer.name, "path"),
        Column("type", lambda one: one.layer.type),
        Column("state", lambda one: Text(one.state, "error" if one.state == "outside" else "")),
        Column("outside", lambda one: one.outside or None, "number"),
        Column("of", "elements", "number"),
        Column("reason", "reason", "sentence"),
    ]
    return Table(columns, layers, what="tensors")
