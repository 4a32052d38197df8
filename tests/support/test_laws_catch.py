"""Each law catches an operation that breaks it: a law that nothing can fail is no law."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from irexec.ir.facts import Fact
from irexec.ops import registry
from tests.support import laws
from tests.support.cases import case

_CALLS = [0]


def _good(x: np.ndarray) -> np.ndarray:
    return x + 1


def _wrong(x: np.ndarray) -> np.ndarray:
    return x + 2


def _same(x: np.ndarray) -> np.ndarray:
    return x


def _by_memory(x: np.ndarray) -> np.ndarray:
    return x + (1 if x.flags.c_contiguous else 2)


def _never_the_same(x: np.ndarray) -> np.ndarray:
    _CALLS[0] += 1
    return x + 1 + (_CALLS[0] > 1)


def _exact(x: Fact) -> Fact:
    return Fact(x.element, x.shape)


def _loose(x: Fact) -> Fact:
    return Fact(x.element, None)


def _guessing(x: Fact) -> Fact:
    return Fact(x.element, x.shape if x.is_static else (1,))


BROKEN: dict[str, tuple[Callable[..., Any], Callable[..., Any], Callable[..., Any] | None]] = {
    "law_1_gives": (_wrong, _exact, None),
    "law_2_leaves_inputs_alone": (_same, _exact, None),
    "law_3_exact_facts": (_good, _loose, None),
    "law_4_facts_admit": (_good, _guessing, None),
    "law_5_layouts": (_by_memory, _exact, None),
    "law_6_runs": (_good, _exact, _wrong),
    "law_7_again": (_never_the_same, _exact, None),
}


@pytest.fixture
def broken(request: pytest.FixtureRequest) -> Iterator[str]:
    kernel, facts, bind = BROKEN[request.param]
    registry.definitions()
    before = dict(registry._REGISTRY)
    definition = registry.op("Broken", "test")(kernel)
    definition.facts(facts)
    if bind is not None:
        definition.bind(lambda *_: bind)
    _CALLS[0] = 0
    yield request.param
    registry._REGISTRY.clear()
    registry._REGISTRY.update(before)


@pytest.mark.parametrize("broken", BROKEN, indirect=True)
def test_is_caught(broken: str) -> None:
    row = case(
        "Broken", "test", np.arange(6, dtype=np.float32).reshape(2, 3), gives=np.arange(1, 7, dtype=np.float32).reshape(2, 3), id=broken
    )
    law = next(law for law in laws.LAWS if law.__name__ == broken)
    with pytest.raises(AssertionError):
        law(row, row.gives or ())


def test_every_law_is_tried() -> None:
    assert list(BROKEN) == [law.__name__ for law in laws.LAWS]
