"""Public reports of wrong results get the verdicts that the documentation says."""

from __future__ import annotations

import pytest

from tests.judge_sweep.public import FAULTS, PublicFault
from tests.support.paths import ROOT

_VERDICTS = {
    "bug": "bug", "fusion": "bug while unobserved", "precision": "precision", "agrees": "agrees",
    "open": "left open", "model": "the model itself", "no-bound": "no bound", "unexplained": "not explained",
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.thread)
def test_the_verdict_about_a_public_report(fault: PublicFault) -> None:
    assert fault.judged().verdict == fault.verdict


def test_the_page_has_a_row_for_each_report() -> None:
    page = (ROOT / "docs" / "tutorials" / "which-is-right.md").read_text("utf-8")
    expected = [f"| {fault.link} | {fault.what} | {_VERDICTS[fault.verdict]} |" for fault in FAULTS]
    assert [line for line in page.splitlines() if line.startswith("| [")] == expected
