"""Damaged files: whatever a text says, there is a model, findings or an error of irexec."""

from __future__ import annotations

import contextlib
import random
import re

import pytest

import irexec
from irexec.errors import IrexecError
from irexec.reading import read_tolerant
from tests.converters.legacy_ir.test_layers import ROWS

_VALUES = re.compile(r'(?<=")[^"<>]*(?=")|(?<=<dim>)[^<]*(?=</dim>)')
_WRONG = (
    "", "0", "-1", "1", "3", "2,3", "nan", "abc", "-3", "1e9", "70000000", "300000000000", "999999999999999999", "2.5",
    "FP16", "I64", "U8", "I32",
)  # fmt: skip


@pytest.mark.parametrize("seed", range(300))
def test_a_wrong_value_is_an_error_of_irexec(seed: int) -> None:
    choices = random.Random(seed)
    file, _ = ROWS[seed % len(ROWS)].file()
    text = file.text.decode()
    for _ in range(choices.choice((1, 1, 2))):
        place = choices.choice(list(_VALUES.finditer(text)))
        text = text[: place.start()] + choices.choice(_WRONG) + text[place.end() :]
    with contextlib.suppress(IrexecError):
        model, found = read_tolerant(text.encode(), file.data)
        assert model is not None or any(finding.severity == "error" for finding in found)
        if model is not None:
            irexec.validate(model)
