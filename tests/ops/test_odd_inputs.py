"""Facts rules meet whatever a file can hold: they answer or raise OpError, and nothing else, whatever the numbers."""

from __future__ import annotations

import random

import numpy as np
import pytest

from irexec.dtypes.elements import BOOLEAN, F16, F32, I32, I64, STRING, U8
from irexec.errors import OpError
from irexec.ir.dims import ANY, Dim
from irexec.ir.facts import Fact
from irexec.schema.attributes import Variables
from irexec.schema.opdef import OpDef
from irexec.schema.registry import definitions
from irexec.testing import Case
from irexec.testing.rows import read_attributes
from tests.support.cases import families

_ROWS: dict[tuple[str, object], list[Case]] = {}
for _rows in families().values():
    for _row in _rows:
        if isinstance(_row, Case):
            _ROWS.setdefault((_row.type, _row.since), []).append(_row)

_SIZES = [0, 1, 2, 3, 7, ANY, Dim(0, 4), Dim(2, 9), Dim(1, None), 10**30]
_VALUES = [0, 1, -1, 2, 3, -7, 100, 2**31 - 1, -(2**63), 2**63 - 1]
_TEXTS = [
    "",
    "0",
    "1",
    "-1",
    "2",
    "1, 1",
    "0, 0, 0",
    "-1, 2",
    "99999999999999999999",
    "true",
    "false",
    "nan",
    "inf",
    "1e9",
    "x",
    "...",
]


def _odd_fact(rng: random.Random, fact: Fact) -> Fact:
    """The fact with its type, its shape or its value spoiled, or as it is."""
    kind = rng.choice([fact.element] * 6 + [F32, F16, I64, I32, U8, BOOLEAN, STRING, None])
    choice = rng.random()
    if choice < 0.3:
        return Fact(kind, fact.shape, fact.value if kind is fact.element else None)
    if choice < 0.4:
        return Fact(kind, None)
    if fact.value is not None and kind is not None and kind.is_integer and choice < 0.75:
        limits = np.iinfo(kind.carrier)
        shape = rng.choice([(), (0,), (1,), (2,), (3,), (5,), (2, 2), fact.value.shape])
        count = int(np.prod(shape))
        values = [min(max(rng.choice(_VALUES), int(limits.min)), int(limits.max)) for _ in range(count)]
        return Fact(kind, shape, np.array(values, kind.carrier).reshape(shape))
    return Fact(kind, tuple(rng.choice(_SIZES) for _ in range(rng.randint(0, 6))))


def _odd_attributes(rng: random.Random, texts: dict[str, str]) -> dict[str, str]:
    return {
        name: rng.choice(_TEXTS) if rng.random() < 0.15 else text for name, text in texts.items() if rng.random() > 0.03
    }


@pytest.mark.parametrize(
    "definition", [d for d in definitions() if (d.type, d.since) in _ROWS], ids=lambda d: f"{d.type}-{d.since}"
)
def test_rules_answer_or_refuse(definition: OpDef) -> None:
    rng = random.Random(f"{definition.type}-{definition.since}")
    rows = _ROWS[definition.type, definition.since]
    injected = {name: {} for name, kind in definition.injected.items() if kind is Variables}
    for _ in range(300):
        row = rng.choice(rows)
        facts = [_odd_fact(rng, Fact(x.element, x.array.shape, x.array)) for x in row.inputs]
        texts = _odd_attributes(rng, row.attributes)
        try:
            attributes = read_attributes(definition, texts)
            definition.infer(facts, attributes | injected)
        except OpError:
            continue
        except Exception as error:
            raise AssertionError(f"{type(error).__name__}: {error} for {facts} with {texts}") from error
