"""Rows of Einsum."""

from __future__ import annotations

import numpy as np

from irexec.testing import Row, random, typed
from tests.cases import Operation
from tests.support.cases import odd

_A = random("f32", 2, 3, 4)
_SQUARE = random("f32", 2, 3, 3)


einsum = Operation("Einsum", 7)


def _row(equation: str, *inputs: object, id: str | None = None, gives: object = None) -> Row:
    return einsum(*inputs, equation=equation, id=id or equation, gives=gives)


_NUMBERS = np.float32([[1, 2, 3], [4, 5, 6], [7, 8, 9]])

ROWS: list[Row] = [
    # The examples of the specification.
    _row("i,i->", [1.0, 2.0, 3.0], [4.0, 5.0, 6.0], gives=np.float32(32)),
    _row("ij,j->i", [[1.0, 2.0, 3.0]] * 2, [4.0, 5.0, 6.0], gives=np.float32([32, 32])),
    _row("kii->k", np.stack([_NUMBERS, 2 * _NUMBERS]), gives=np.float32([15, 30])),
    _row("kii->ki", np.stack([_NUMBERS, 2 * _NUMBERS]), gives=np.float32([[1, 5, 9], [2, 10, 18]])),
    _row("ijk->kij", _NUMBERS[None], gives=np.float32([[[1, 4, 7]], [[2, 5, 8]], [[3, 6, 9]]])),
    _row("a...->...", _NUMBERS, gives=np.float32([12, 15, 18])),
    _row("a...,...->a...", _NUMBERS, [0.5], gives=_NUMBERS / 2),
    _row("AbC", _NUMBERS[None, :2], gives=np.float32([[[1, 4], [2, 5], [3, 6]]])),
    _row("dbbc,ca", np.ones((2, 3, 3, 4), np.float32), np.ones((4, 5), np.float32), gives=np.full((5, 2), 12, np.float32)),
    # Recorded.
    _row("ij,jk->ik", random("f32", 2, 3), random("f32", 3, 4)),
    _row("ij,jk", random("f32", 2, 3), random("f32", 3, 4)),
    _row("Bj,ja", random("f32", 2, 3), random("f32", 3, 4)),
    _row("bij,bjk->bik", _A, random("f32", 2, 4, 5)),
    _row("abc->cab", _A),
    _row("abc->", _A),
    _row("abc->ac", _A),
    _row("abc", _A),
    _row("cab", _A),
    _row("ij->ij", random("f32", 2, 3)),
    _row("aii->ai", _SQUARE),
    _row("aii->a", _SQUARE),
    _row("...ii->...i", _SQUARE),
    _row("ijkj->ij", random("f32", 2, 4, 5, 4)),
    _row("a,b->ab", random("f32", 3), random("f32", 4)),
    _row("a,a->a", random("f32", 3), random("f32", 3)),
    _row(",ab->ab", 2.5, random("f32", 3, 4), id="a scalar"),
    _row("a,b,c->abc", random("f32", 2), random("f32", 3), random("f32", 4)),
    _row("ab,bcd,bc->ca", random("f32", 2, 5), random("f32", 5, 3, 6), random("f32", 5, 3)),
    _row("ab...,ac...,ade->...bc", random("f32", 2, 3, 4), random("f32", 2, 7, 1), random("f32", 2, 4, 7)),
    _row("a...b,b...->a...", random("f32", 5, 1, 4, 3), random("f32", 3, 6, 2, 1)),
    _row("...a,...a->...", random("f32", 2, 1, 4), random("f32", 3, 4)),
    _row("...a,a...", random("f32", 2, 4), random("f32", 4, 2)),
    _row("a...->a", random("f32", 2, 3, 4), id="the ellipsis summed"),
    _row("ij,jk->ik", random("f32", 2, 1), random("f32", 3, 4), id="equal labels are broadcast"),
    _row("aac,abd,ddde->", random("f32", 2, 2, 3), random("f32", 2, 4, 3), random("f32", 3, 3, 3, 5)),
    _row("ij,jk->ik", random("i32", 2, 3, low=-9, high=9), random("i32", 3, 4, low=-9, high=9), id="i32"),
    _row("ij,jk->ik", random("f16", 2, 3), random("f16", 3, 4), id="f16"),
    _row("ij,jk->ik", random("bf16", 2, 3), random("bf16", 3, 4), id="bf16"),
    _row("ij,jk->ik", random("f64", 2, 3), random("f64", 3, 4), id="f64"),
    _row("i j , jk -> i k", random("f32", 2, 3), random("f32", 3, 4), id="blanks", gives=random("f32", 2, 3).array @ random("f32", 3, 4).array),
    _row("ij,jk->ik", np.zeros((2, 0), np.float32), np.zeros((0, 4), np.float32), id="empty", gives=np.zeros((2, 4), np.float32)),
    einsum.facts("f32[?,2..5]", "f32[3,4]", equation="ij,jk->ik", id="dynamic"),
    einsum.facts("f32[?,2..5,7]", "f32[3,1,4]", equation="a...b,c...a->...cb", gives="f32[2..5,3,7]", id="ellipsis"),
    einsum.facts("f32[...]", "f32[3,4]", equation="ij,jk->ik", id="rank unknown"),
    einsum.facts("f32[...]", "f32[3,4]", equation="...j,jk->...k", gives="f32[...]", id="ellipsis of unknown rank"),
    einsum.refuses(random("f32", 2, 3), random("f32", 2, 4), equation="ij,jk->ik", says="has sizes 3 and 2", id="sizes"),
    einsum.facts("f32[?,2..5,2..9]", "f32[1,?]", equation="ijj,ik->ijk", id="diagonal"),
    einsum.refuses(random("f32", 2, 3, 1), equation="ijj->i", says="in one input", id="no diagonal"),
    einsum.refuses(random("f32", 2, 3), equation="i->i", says="does not have the 1 axes", id="rank"),
    einsum.refuses(random("f32", 2), equation="ij...->i", says="does not have the 2 axes", id="rank below the ellipsis"),
    einsum.refuses(random("f32", 2, 3), equation="ij->ik", says="is not in any operand", id="unknown label"),
    einsum.refuses(random("f32", 2, 3), equation="ij->iij", says="label twice", id="label twice"),
    einsum.refuses(random("f32", 2, 3), equation="i1->i", says="is not made of letters", id="digits"),
    einsum.refuses(random("f32", 2, 3), equation="......->i", says="is not made of letters", id="two ellipses"),
    einsum.refuses(random("f32", 2, 3), equation="ij,jk->ik", says="has 2 operands", id="operands"),
    einsum.refuses(random("f32", 2, 3), random("i32", 3, 4), equation="ij,jk->ik", says="differ", id="types"),
    einsum.refuses(typed("boolean", [[True]]), equation="ij->i", says="boolean", id="booleans"),
]  # fmt: skip
ROWS += [*odd(ROWS)]
ROWS += [
    einsum(random("f32", 2, 3), random("f32", 3), equation="ab,b->ba", id="ab,b->ba"),
    einsum(random("f32", 1, 3), random("f32", 2, 3), equation="...a,...a->...", id="an ellipsis that stretches"),
    # By the definition; the plugin leaves what was in memory.
    einsum(
        random("f32", 2, 0),
        random("f32", 0, 2),
        equation="ij,jk->ik",
        gives=np.zeros((2, 2), np.float32),
        id="nothing to sum",
    ),
]
ROWS += [
    einsum.facts("f32[...]", "f32[1]", equation="a,a->a", gives="f32[?]", id="a size of 1 and an unknown one"),
    einsum.facts("f32[1]", "f32[...]", equation="a,a->a", gives="f32[?]", id="an unknown size and 1"),
]
