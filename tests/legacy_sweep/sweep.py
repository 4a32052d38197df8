"""Random networks of one layer type of IR 2 to 7, in each version that has it, against Inference Engine."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from irexec.tools.engines.inference_engine import VARIABLE, InferenceEngine, environments
from tests.legacy_sweep.case import run, types, versions
from tests.sweep.kind import Case, Kind, Outcome


class Sweep(Kind):
    """The layer types that have a generator."""

    cases = 1

    def __init__(self, options: argparse.Namespace) -> None:
        super().__init__(options)
        self._open = ExitStack()
        self._folder = Path(self._open.enter_context(tempfile.TemporaryDirectory()))
        found = environments(options.engines)
        if not found:
            raise SystemExit("Inference Engine is not installed: python -m tests.legacy_sweep.install FOLDER")
        self._engines = {
            release: self._open.enter_context(InferenceEngine(release, path)) for release, path in found.items()
        }
        texts = options.versions.split(",") if options.versions else range(2, 8)
        self._versions = set(map(int, texts))

    @classmethod
    def add_options(cls, add: Callable[..., Any]) -> None:
        add("--versions", help="versions of IR, with commas between them")
        add("--engines", help=f"the folder of the releases; default: ${VARIABLE}")

    def names(self) -> list[str]:
        return types()

    def close(self) -> None:
        self._open.close()

    @contextmanager
    def opened(self, name: str) -> Iterator[Case]:
        """A network for each version of IR, and its outcome in each release."""

        def case(number: int) -> Iterator[Outcome]:
            for version in versions(name):
                if version in self._versions:
                    found = run(name, version, number, self._engines, self._folder)
                    yield from (
                        Outcome(f"IR v{version}, {release}: refused", why) for release, why in found.refused.items()
                    )
                    yield from (Outcome(f"IR v{version}, {release}: ran") for release in found.ran)
                    yield from (Outcome("differs", f"v{version}: {text}", fails=True) for text in found.faults)

        yield case
