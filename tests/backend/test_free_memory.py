"""Freed memory goes back to the system after constants were packed, and only then."""

from __future__ import annotations

import pytest

import irexec
from irexec.backend.system import return_free_memory
from irexec.testing import case, model_of, random


def test_returning_memory_works_on_every_platform() -> None:
    return_free_memory()


def test_memory_is_returned_where_weights_were_packed(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[None] = []
    monkeypatch.setattr("irexec.runtime.program.return_free_memory", lambda: calls.append(None))
    row = case(
        "MatMul", 1, random("f32", 4, 64), random("f32", 64, 32, seed=1), id="one", transpose_a=False, transpose_b=False
    )
    given, inputs = model_of(row, first_constant=1)
    model = irexec.compile_model(given)
    for _ in range(2):
        model(inputs)
    assert len(calls) == 1
