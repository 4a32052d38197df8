"""The result of a bisection."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from irexec.display import Column, Content, Table, Text, sections_of
from irexec.messages import counted
from irexec.records import Record, Records, Report
from irexec.tools.compare.comparison import ComparedLayer, Comparison

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
