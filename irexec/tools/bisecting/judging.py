"""The verdict about a release: each of its layers beside the interval of correct implementations."""

from __future__ import annotations

from collections.abc import Sequence

from irexec.api import ModelLike
from irexec.errors import IrexecError
from irexec.tools.bisecting.options import BisectOptions
from irexec.tools.bisecting.result import NOT_JUDGED, JudgedRelease
from irexec.tools.compare.inputs import Given
from irexec.tools.engines.releases.environments import Release
from irexec.tools.judge import JudgeOptions, judge
from irexec.tools.run.input_sources import InputSource


def judged_release(
    release: Release,
    model: ModelLike,
    inputs: Given | Sequence[Given] | None,
    sources: Sequence[InputSource],
    options: BisectOptions,
    folder: str,
) -> JudgedRelease:
    """The verdict about a release; arguments as for ``bisect``, with the folder of the environments."""
    asked = JudgeOptions(
        runtime=release.runtime,
        environments=folder,
        shapes=options.shapes,
        seed=options.seed,
        steps=options.runs,
        threads=options.threads,
        timeout=options.timeout,
    )
    try:
        found = judge(model, inputs, asked, sources=sources)
    except IrexecError as error:
        return JudgedRelease(release.version, NOT_JUDGED, str(error))
    return JudgedRelease(release.version, found.verdict, found.sentence, tuple(one.layer for one in found.at))
