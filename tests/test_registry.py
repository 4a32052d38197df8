"""Completeness: every registered operation has its docstring, its shape rule and rows; the opsets are all there."""

from __future__ import annotations

import numpy as np
import pytest

from irexec.errors import OpError
from irexec.schema.opdef import OpDef
from irexec.schema.registry import NEWEST_OPSET, definitions, opset_versions, resolve
from irexec.testing import Case, FactsCase
from irexec.testing.laws import infer, kernel, read_only
from irexec.testing.random_cases import EXEMPT, random_cases
from irexec.testing.rows import exact_facts
from tests.support.cases import families, runnable_definitions
from tests.support.paths import ROOT

_PAIRS = opset_versions()
_ROWS = [row for rows in families().values() for row in rows]
# What the reader, the session and the bodies of Loop need; their tests are those of the graphs they stand in.
_IN_GRAPHS = {"Parameter", "Constant", "ReadValue", "Assign", "If", "Loop", "TensorIterator"}


def _id(definition: OpDef) -> str:
    return f"{definition.type}-{definition.since}"


def test_no_version_is_listed_twice() -> None:
    assert len(_PAIRS) == len(set(_PAIRS))


def test_the_documentation_counts_the_types_and_the_versions() -> None:
    """A new opset changes the counts: these are the only places to change."""
    versions, types = len(_PAIRS), len({type for type, _ in _PAIRS})
    implemented = len({(one.type, one.since) for one in definitions()}.intersection(_PAIRS))
    for page, text in {
        "README.md": f"{implemented} of the {versions} versions of OpenVINO's operations ({types} types, opsets 1 to {NEWEST_OPSET})",
        "docs/index.md": f"Every version of the operations of opsets 1 to {NEWEST_OPSET}",
    }.items():
        assert text in (ROOT / page).read_text("utf-8"), page


@pytest.mark.parametrize(("type", "since"), _PAIRS, ids=[f"{type}-{since}" for type, since in _PAIRS])
def test_every_version_is_there(type: str, since: int) -> None:
    assert resolve(type, f"opset{since}").since == since


@pytest.mark.parametrize(
    ("type", "version", "since"),
    [
        ("MVN", "opset1", 2),
        ("ROIPooling", "opset1", 2),
        ("ReorgYolo", "opset1", 2),
        ("ExperimentalDetectronROIFeatureExtractor", "extension", 6),
        ("ExperimentalDetectronPriorGridGenerator", "experimental", 6),
        ("GRUCell", "experimental", 3),
        ("Proposal", "extension", 4),
    ],
)
def test_versions_of_model_optimizer_that_no_opset_has(type: str, version: str, since: int) -> None:
    """OpenVINO 2026.4.1 reads all of them."""
    assert resolve(type, version).since == since


@pytest.mark.parametrize("definition", runnable_definitions(), ids=_id)
def test_is_complete(definition: OpDef) -> None:
    assert definition.kernel.__doc__
    assert callable(getattr(definition, "shape_function", None))
    if definition.type in _IN_GRAPHS:
        return
    rows = [row for row in _ROWS if (row.type, row.since) == (definition.type, definition.since)]
    assert any(isinstance(row, Case) for row in rows), "no row says what it gives"
    assert any(isinstance(row, FactsCase) for row in rows), "no row says what is inferred where little is known"


@pytest.mark.parametrize("definition", definitions(), ids=_id)
def test_is_one_of_the_pairs_or_an_extension(definition: OpDef) -> None:
    assert (definition.type, definition.since) in _PAIRS or definition.since in (
        "onednn",
        "irexec",
        "extension",
        "ie_internal_opset",
    )


# Every operation that OpenVINO knows has random cases for tests/oracle/sweep.py and irexec conform, and they are sound.


def test_every_operation_is_drawn() -> None:
    known = {(d.type, d.since) for d in definitions() if isinstance(d.since, int)}
    assert known - random_cases().keys() - EXEMPT.keys() == set()
    assert not random_cases().keys() & EXEMPT.keys()


@pytest.mark.parametrize("pair", sorted(random_cases()), ids=lambda pair: f"{pair[0]}-{pair[1]}")
def test_draws_are_sound(pair: tuple[str, int]) -> None:
    """They are of that very operation, the same for the same seed, and most of them can be computed."""
    computed = 0
    for seed in range(5):
        row, again = (random_cases()[pair](np.random.default_rng(seed)) for _ in range(2))
        assert (row.type, row.since, row.digest) == (*pair, again.digest)
        assert row.definition.since == pair[1]
        try:
            infer(row, exact_facts(row))
            kernel(row, read_only(row))
            computed += 1
        except OpError:
            pass
    assert computed >= 3
