"""Releases of OpenVINO on the models of public reports: ``python -m tests.judge_sweep.releases FOLDER [threads]``.

The folder has the environments of ``irexec bisect``. Each release is judged on the model and the inputs of each report,
of those that need no planted fault: when a fault appeared, and when it vanished.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from irexec.errors import EngineError, IrexecError
from irexec.tools.engines.releases import Release, installed
from irexec.tools.judge import judge
from tests.judge_sweep.public import FAULTS, PublicFault

_SHORT = {
    "agrees": ".", "bug": "BUG", "fusion": "FUSED", "precision": "prec", "open": "open", "model": "model",
    "no-bound": "-", "unexplained": "?",
}  # fmt: skip


def verdict(fault: PublicFault, release: Release, folder: str) -> str:
    """The verdict about a release; "refused" if it does not run the model."""
    try:
        found = judge(fault.model, fault.inputs, runtime=release.runtime, environments=folder, timeout=120)
    except EngineError:
        return "refused"
    except IrexecError as error:
        return str(error)
    return _SHORT[found.verdict]


def spans(verdicts: Sequence[tuple[str, str]]) -> str:
    """Verdicts by versions, in which neighbours with the same verdict are one."""
    found: list[tuple[str, str, str]] = []
    for version, text in verdicts:
        if found and found[-1][2] == text:
            found[-1] = (found[-1][0], version, text)
        else:
            found.append((version, version, text))
    return ", ".join(f"{text} {first if first == last else f'{first} to {last}'}" for first, last, text in found)


def main() -> int:
    """Print a line for each report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("threads", nargs="*", help="such as openvinotoolkit/openvino#35934; all unless given")
    args = parser.parse_args()
    releases = [one for one in installed("openvino", Path(args.folder)) if one.key >= (2022, 1)]
    for fault in FAULTS:
        if fault.damage is None and (not args.threads or fault.thread in args.threads):
            rows = [(release.version, verdict(fault, release, args.folder)) for release in releases]
            print(f"{fault.thread} {fault.what}\n    {spans(rows)}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
