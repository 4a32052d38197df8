"""Random one-operation models through OpenVINO and through irexec.

With --written OpenVINO's own API makes and writes the models (tests/oracle/written.py), and others with bodies and
variables (tests/oracle/written_bodies.py). tests/oracle/judge.py says what is compared. A difference that
tests/oracle/explained.py does not explain fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tests.sweep.kind import Case, Kind, Outcome


class Sweep(Kind):
    """The versions of operations that have random cases: "Gather-8"."""

    cases = 50
    told = frozenset({"explained"})
    is_isolated = True

    @classmethod
    def add_options(cls, add: Callable[..., Any]) -> None:
        add("--written", action="store_true", help="models that OpenVINO's own API makes and writes")

    def names(self) -> list[str]:
        return sorted({*random_operations(), *(_with_bodies() if self.options.written else ())})

    @contextmanager
    def opened(self, name: str) -> Iterator[Case]:
        """A model for each number."""
        from irexec.testing.random_cases import CaseGenerator, random_cases, seeded
        from tests.oracle import judge, written_bodies
        from tests.oracle import written as by_api

        judging = by_api.judge if self.options.written else judge.judge
        pair = type_and_since(name)

        def case(number: int) -> Iterator[Outcome]:
            rng = seeded(*pair, number)
            gen = CaseGenerator(rng)
            if pair in random_cases():
                found = judging(random_cases()[pair](rng), gen, self.asking)
            else:
                found = written_bodies.judge(pair, gen, self.asking)
            yield Outcome(found.kind, found.why, fails=found.kind == judge.DIFFERS)

        yield case


def random_operations() -> list[str]:
    """The versions of operations that have random cases."""
    from irexec.testing.random_cases import random_cases

    return [f"{type}-{since}" for type, since in sorted(random_cases())]


def _with_bodies() -> list[str]:
    from tests.oracle.written_bodies import MODELS

    return [f"{type}-{since}" for type, since in MODELS]


def type_and_since(name: str) -> tuple[str, int]:
    """The type and version of a name of ``random_operations``."""
    type, _, since = name.rpartition("-")
    return type, int(since)
