"""The release of a runtime with which the results of a model change."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from irexec.analysis.model import Model
from irexec.api import ModelLike, as_model
from irexec.display import Column, Content, Table, Text, sections_of
from irexec.errors import EngineError, InputError, IrexecError, RunTimeoutError
from irexec.messages import counted, silent
from irexec.records import Record, Records, Report
from irexec.tools.bisecting.releases import BisectOptions, InstalledReleases, PublishedReleases, range_of
from irexec.tools.compare import ComparedLayer, CompareOptions, Comparison, compare
from irexec.tools.compare.inputs import Given
from irexec.tools.engines.releases import Release, environments_folder
from irexec.tools.judge import JudgeOptions, judge
from irexec.tools.run.input_sources import InputSource

NOT_JUDGED = "not judged"
_WRONG = ("bug", "fusion")
AGREES, DIFFERS, REFUSED, SKIPPED = "agrees", "differs", "refused", "skipped"
VERDICTS = (AGREES, DIFFERS, REFUSED, SKIPPED)
"""Refused: the release does not run the model, or its process ended. Skipped: the release is not installed."""


@dataclass(frozen=True)
class ReleaseRun(Record):
    """The model in one release.

    Attributes:
        version: of the release.
        verdict: of VERDICTS.
        why: the reason for another verdict than "agrees": the first difference, or a message.
        layer: the layer of the first difference, with its type; "" if there is none.
        comparison: with the other side; None where the release did not run.
    """

    version: str
    verdict: str
    why: str = ""
    layer: str = ""
    comparison: Comparison | None = field(default=None, repr=False, metadata={"json": False})


@dataclass(frozen=True)
class ReleaseChange(Record):
    """Two releases with different verdicts, the first pair in the range that the search found.

    Attributes:
        before, after: the last release with the old verdict, and the first one with the new one.
        untested: the releases between them, which could not be run.
    """

    before: ReleaseRun
    after: ReleaseRun
    untested: tuple[str, ...] = ()


@dataclass(frozen=True)
class JudgedRelease(Record):
    """The verdict of ``irexec judge`` about a release.

    Attributes:
        version: of the release.
        verdict: of irexec.tools.judge.judgement.Verdict, or "not judged".
        sentence: the verdict in a sentence, or the reason for none.
        layers: the layers that the verdict names.
    """

    version: str
    verdict: str
    sentence: str
    layers: tuple[ComparedLayer, ...] = ()

    @property
    def is_wrong(self) -> bool:
        """Whether the release has a bug."""
        return self.verdict in _WRONG


@dataclass(frozen=True)
class Bisection(Report):
    """The result of a bisection.

    Attributes:
        model: its path or name.
        package: "openvino" or "onnxruntime".
        against: the other side of every comparison: "irexec", or a release such as "openvino 2023.0.0".
        tolerance: the tolerance as text.
        releases: number of releases in the range.
        runs: the releases that were tried, the oldest first.
        change: where the verdict changes; None if the first and the last release that run have the same one.
        inputs: the shapes of the inputs.
        judged: the verdicts about the two releases of the change, or about the last one that differs if all do.
    """

    model: str
    package: str
    against: str
    tolerance: str
    releases: int
    runs: Records[ReleaseRun]
    change: ReleaseChange | None
    inputs: Mapping[str, tuple[int, ...]]
    judged: tuple[JudgedRelease, ...] = ()
    _json_properties = ("agrees",)

    @property
    def agrees(self) -> bool:
        """Whether every release that was tried agrees; those that are not installed do not count."""
        return all(run.verdict in (AGREES, SKIPPED) for run in self.runs)

    @property
    def summary(self) -> str:
        """The result in a sentence."""
        if self.change is not None:
            return _changed(self.package, self.against, self.change)
        tried = [run for run in self.runs if run.verdict != SKIPPED]
        if not tried:
            return f"no release of {self.package} could be run"
        text = {AGREES: f"agree with {self.against}", DIFFERS: f"differ from {self.against}"}
        done = text.get(tried[0].verdict, "refuse the model")
        if any(run.verdict != tried[0].verdict for run in tried):
            return f"{self.package} {tried[0].version} and {tried[-1].version} {done}, and others between do not"
        return f"all {counted(len(tried), 'release')} that were run {done}"


def _who_is_wrong(package: str, judged: Sequence[JudgedRelease]) -> str:
    """The title of the verdicts."""
    wrong = [one.version for one in judged if one.is_wrong]
    if wrong:
        return f"judge: {package} {' and '.join(wrong)} {'is' if len(wrong) == 1 else 'are'} wrong"
    if any(one.verdict == NOT_JUDGED for one in judged):
        return "judge finds no fault in what could be judged"
    return f"judge finds no fault{' in either' if len(judged) > 1 else ''}"


def _changed(package: str, against: str, change: ReleaseChange) -> str:
    after = change.after
    does = {AGREES: f"agrees with {against}", DIFFERS: f"differs from {against}", REFUSED: "refuses the model"}
    runs = "runs the model, and " if change.before.verdict == REFUSED else ""
    text = f"{package} {after.version} is the first release that {runs}{does[after.verdict]}"
    if after.layer:
        text += f", first in {after.layer}"
    elif change.before.layer:
        text += f"; {change.before.version} differed first in {change.before.layer}"
    if change.untested:
        text += f"; or one of {', '.join(change.untested)}, which could not be run"
    return text


@sections_of.register
def bisection_sections(found: Bisection) -> Iterable[Content]:
    """The releases that were tried, the change, and counts."""
    tried = [run for run in found.runs if run.verdict != SKIPPED]
    skipped = [run for run in found.runs if run.verdict == SKIPPED]
    return [
        Table(
            [
                Column("release", lambda run: run.version),
                Column("", lambda run: Text(run.verdict, "" if run.verdict == AGREES else "error")),
                Column("first in", lambda run: run.layer),
                Column("why", lambda run: run.why, "sentence"),
            ],
            tried,
            what="releases",
        ),
        *(Text(f"skipped {run.version}: {run.why}", "note") for run in skipped),
        Text(found.summary, "title"),
        *([Text(_who_is_wrong(found.package, found.judged), "title")] if found.judged else []),
        *(Text(f"{one.version}: {one.sentence}", "error" if one.is_wrong else "") for one in found.judged),
        "; ".join(filter(None, [f"{len(tried)} of {counted(found.releases, 'release')} were run", found.tolerance])),
    ]


T = TypeVar("T")
Verdict = Callable[[int], "str | None"]
"""The verdict on an item by its position; None if it cannot be had. It is asked for again, and must be remembered."""


class Boundary(NamedTuple):
    """Two items with different verdicts, by position; no item between them has one."""

    before: int
    after: int


def boundary(low: int, high: int, verdict: Verdict) -> Boundary:
    """Two neighbours between two items with different verdicts: the first of them has the verdict of ``low``.

    Verdicts are assumed to change once. Items without a verdict are passed over.
    """
    base = verdict(low)
    while True:
        middle = (low + high) / 2
        between = sorted(range(low + 1, high), key=lambda item: abs(item - middle))
        found = next((item for item in between if verdict(item) is not None), None)
        if found is None:
            return Boundary(low, high)
        if verdict(found) == base:
            low = found
        else:
            high = found


def ends(items: Sequence[T], verdict: Verdict) -> tuple[int, int] | None:
    """The first and the last item with a verdict; None if no item has one."""
    first = next((i for i in range(len(items)) if verdict(i) is not None), None)
    if first is None:
        return None
    return first, next(i for i in reversed(range(len(items))) if verdict(i) is not None)


Advance = Callable[[float], object]
Say = Callable[[str], object]


def bisect(
    model: ModelLike,
    inputs: Given | Sequence[Given] | None = None,
    options: BisectOptions | None = None,
    *,
    sources: Sequence[InputSource] = (),
    say: Say = silent,
    advance: Advance = silent,
) -> Bisection:
    """Find the release of OpenVINO or ONNX Runtime with which the results of a model change.

    Args:
        model: a model, or a source that read_model accepts; for ONNX Runtime the path of an .onnx.
        inputs, sources: as for compare.
        options: the range of releases, and how they are compared.
        say: receives what is being done.
        advance: called with each finished part of the work, a fraction of it.

    Raises:
        InputError: the range has no release, or the inputs do not fit.
        UnsupportedError: pip cannot list the releases, or irexec does not run the model.
        ModelError, NodeError, ConversionError: irexec cannot read or run the model.
    """
    options = options or BisectOptions()
    folder = environments_folder(options.environments)
    releases = InstalledReleases(folder) if options.installed else PublishedReleases(folder)
    return bisecting(model, inputs, sources, options, releases, say, advance)


def bisecting(
    model: ModelLike,
    inputs: Given | Sequence[Given] | None,
    sources: Sequence[InputSource],
    options: BisectOptions,
    releases: InstalledReleases,
    say: Say = silent,
    advance: Advance = silent,
) -> Bisection:
    """A bisection over the releases of a source; arguments and errors as for ``bisect``."""
    wanted = range_of(options)
    say(f"listing {wanted.package}")
    found = releases.named(wanted, lambda part: advance(part * 0.1))
    if not found:
        where = f"in {releases.folder}" if options.installed else "for any Python on this platform"
        raise InputError(f"there is no release {wanted} {where}")
    asked = model if isinstance(model, str | os.PathLike) else as_model(model)
    against = "" if options.against == "first" else "irexec"
    return _Bisecting(asked, inputs, sources, options, releases, found, say, advance, against).found()


@dataclass(eq=False)
class _Bisecting:
    """A bisection while it is made.

    Attributes:
        model, inputs, sources, options, releases, say, advance: as for ``bisecting``.
        listed: the releases of the range, the oldest first.
        against: the runtime of the other side: irexec, or the first release that runs the model; "" until it is known.
        runs: the releases that were tried, by their index.
    """

    model: str | os.PathLike[str] | Model
    inputs: Given | Sequence[Given] | None
    sources: Sequence[InputSource]
    options: BisectOptions
    releases: InstalledReleases
    listed: Sequence[Release]
    say: Say
    advance: Advance
    against: str
    runs: dict[int, ReleaseRun] = field(default_factory=dict)

    def found(self) -> Bisection:
        """Run the releases; called once."""
        if self.options.against == "first":
            # Every comparison needs it.
            next((i for i in range(len(self.listed)) if self._verdict(i) == AGREES), None)
        if self.options.all:
            for i in range(len(self.listed)):
                self._verdict(i)
        at = self._boundary()
        change = None
        if at is not None:
            between = tuple(self.listed[i].version for i in range(at.before + 1, at.after))
            change = ReleaseChange(self.runs[at.before], self.runs[at.after], between)
        runs = Records(self.runs[i] for i in sorted(self.runs))
        made = next((run.comparison for run in runs if run.comparison is not None), None)
        model = self.model
        return Bisection(
            str(model if isinstance(model, str | os.PathLike) else model.path or model.name or "the model"),
            self.listed[0].package,
            self.against.replace("==", " ") or "the first release",
            made.tolerance if made else "",
            len(self.listed),
            runs,
            change,
            made.inputs if made else {},
            tuple(self._judged(self.listed[i]) for i in self._to_judge(at)),
        )

    def _to_judge(self, change: Boundary | None) -> list[int]:
        """The releases of the change that run the model; without a change the last one that differs."""
        if change is not None:
            return [i for i in change if self._verdict(i) in (AGREES, DIFFERS)]
        return [i for i in sorted(self.runs) if self._verdict(i) == DIFFERS][-1:]

    def _judged(self, release: Release) -> JudgedRelease:
        """The verdict about a release."""
        self.say(f"judging {release}")
        options = self.options
        asked = JudgeOptions(
            runtime=release.runtime,
            environments=str(self.releases.folder),
            shapes=options.shapes,
            seed=options.seed,
            steps=options.runs,
            threads=options.threads,
            timeout=options.timeout,
        )
        try:
            found = judge(self.model, self.inputs, asked, sources=self.sources)
        except IrexecError as error:
            return JudgedRelease(release.version, NOT_JUDGED, str(error))
        return JudgedRelease(release.version, found.verdict, found.sentence, tuple(one.layer for one in found.at))

    def _boundary(self) -> Boundary | None:
        """The change: releases at the beginning that refuse the model are not a change, unless all that follow run."""
        both = ends(self.listed, self._verdict)
        if both is None:
            return None
        first, last = both
        if self._verdict(first) == REFUSED != self._verdict(last):
            begins = boundary(first, last, self._refuses)
            if self._verdict(begins.after) == self._verdict(last):
                return begins
            first = begins.after
        if self._verdict(first) == self._verdict(last):
            return None
        return boundary(first, last, self._verdict)

    def _refuses(self, i: int) -> str | None:
        """Whether a release refuses the model, as a verdict."""
        verdict = self._verdict(i)
        return None if verdict is None else str(verdict == REFUSED)

    def _verdict(self, i: int) -> str | None:
        if i not in self.runs:
            self.runs[i] = self._run(self.listed[i])
            # A search among N asks for about 2 + log2 N of them.
            count = len(self.listed)
            self.advance(0.9 / (count if self.options.all else 2 + count.bit_length()))
        verdict = self.runs[i].verdict
        return None if verdict == SKIPPED else verdict

    def _run(self, release: Release) -> ReleaseRun:
        self.say(f"installing {release}")
        reason = self.releases.why_not(release)
        if reason:
            return ReleaseRun(release.version, SKIPPED, reason)
        self.say(f"running {release}")
        try:
            found = self._compared(release)
        except (EngineError, RunTimeoutError) as error:
            return ReleaseRun(release.version, REFUSED, str(error))
        is_first = not self.against
        self.against = self.against or release.runtime
        if is_first or found.agrees:
            return ReleaseRun(release.version, AGREES, comparison=found)
        refusal = _refusal(found)
        if refusal:
            return ReleaseRun(release.version, REFUSED, refusal)
        return ReleaseRun(release.version, DIFFERS, *_first_difference(found), found)

    def _compared(self, release: Release) -> Comparison:
        """The comparison of a release with the other side; of the release that is to be the other side, with irexec."""
        options = self.options
        return compare(
            self.model,
            None,
            self.inputs,
            CompareOptions(
                a_runtime=self.against or "irexec",
                b_runtime=release.runtime,
                environments=str(self.releases.folder),
                shapes=options.shapes,
                seed=options.seed,
                runs=options.runs,
                rtol=options.rtol,
                atol=options.atol,
                threads=options.threads,
                timeout=options.timeout,
            ),
            sources=self.sources,
        )


def _first_difference(found: Comparison) -> tuple[str, str]:
    """The first difference as text, and its layer."""
    if found.first is not None:
        row = found.first.row
        layers = found.first.likely or (row.b,)
        return row.agreement.message, str(layers[0])
    row_of_result = next((row for row in found.results if not row.agreement.agrees), None)
    if row_of_result is not None:
        return f"{row_of_result.agreement.message}; no layer differs when it is observed", ""
    return f"no result {', '.join(found.missing_results)}", ""


def _refusal(found: Comparison) -> str:
    """The reason for which a release runs only a part of the model, in which nothing differs; "" for another one."""
    if not found.missing_results or found.first is not None or not all(row.agreement.agrees for row in found.results):
        return ""
    return next((tensor.reason for tensor in found.uncompared if tensor.side == "B"), "")
