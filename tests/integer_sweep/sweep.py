"""Random quantised networks, on 1 to 4 threads, in this process and in one for each other build of the C library.

Values are held to f64; the bits of networks whose products are all computed in integers are the same everywhere. One
network of ten is also judged: its tensors lie inside the intervals of f32, or differ by levels where either is right.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from irexec.native.library import library
from irexec.tools.judge import JudgeOptions, judge
from tests.integer_sweep.networks import Layers, check
from tests.sweep.kind import Case, Kind, Outcome, tried

_JUDGED = 10
"""One network of this number is judged."""
_LEVELS = ("portable", "x86-64-v2", "x86-64-v3", "x86-64-v4", "x86-64-v4-amx")


class Sweep(Kind):
    """Networks, one name."""

    cases = 200

    def __init__(self, options: Any) -> None:
        super().__init__(options)
        self._others: dict[str, subprocess.Popen[str]] = {}

    def names(self) -> list[str]:
        """All networks are of one name."""
        return ["layers"]

    @contextmanager
    def opened(self, name: str) -> Iterator[Case]:
        """A process for each build that this processor can run lives as long as the name."""
        loaded = library()
        assert loaded is not None, "the C library is not built"
        for level in _LEVELS:
            other = subprocess.Popen(
                [sys.executable, "-m", __name__], env={**os.environ, "IREXEC_NATIVE": level}, text=True,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            )  # fmt: skip
            assert other.stdout is not None
            if other.stdout.readline().strip() == level:
                self._others[level] = other
            else:
                other.kill()
        yield self._compared

    def _compared(self, number: int) -> Iterator[Outcome]:
        for i, other in enumerate(self._others.values()):
            assert other.stdin is not None
            other.stdin.write(f"{number} {1 + (number // 3 + i) % 4}\n")
            other.stdin.flush()
        if number % _JUDGED == 0:
            yield from tried(self._judged, number)
        found = {level: other.stdout.readline().strip() for level, other in self._others.items() if other.stdout}
        if wrong := {level: text for level, text in found.items() if " " in text and text != "in floats"}:
            yield Outcome("differs", str(wrong), fails=True)
        elif len(set(found.values())) > 1:
            yield Outcome("other bits", str(found), fails=True)
        else:
            yield Outcome("in floats" if "in floats" in found.values() else "in integers")

    def _judged(self, number: int) -> Iterator[Outcome]:
        """The verdict about a network, while the other processes run it."""
        network = Layers(number)
        network.build_layers()
        found = judge(network.builder.model(), network.feeds, JudgeOptions(runtime="irexec", threads=1))
        yield Outcome(f"judged: {found.verdict}", found.sentence, fails=found.verdict not in ("agrees", "precision"))

    def close(self) -> None:
        """End the processes."""
        for other in self._others.values():
            other.kill()
            other.wait()


def _serve() -> None:
    """Answer numbers of networks and of threads with digests, or with what is wrong, until the input ends."""
    loaded = library()
    # A network lives for one line, and a collection takes as long as a pass over all modules that are loaded.
    gc.freeze()
    gc.set_threshold(200_000, 20, 100)
    print("none" if loaded is None else loaded.level.name, flush=True)
    for line in sys.stdin:
        try:
            print(check(*map(int, line.split())), flush=True)
        except Exception as error:
            print(type(error).__name__, " ".join(str(error).split())[:300], flush=True)


if __name__ == "__main__":
    _serve()
