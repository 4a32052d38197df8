"""A model for a difference of irexec.analysis.portability, as a row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from irexec.testing import Case, case, random, typed


@dataclass(frozen=True)
class Row:
    """One operation as a model.

    Attributes:
        code: of the difference.
        fires: whether the model has it.
        case: the operation and its inputs.
        parameters: the inputs that are Parameters; the others are constants.
        shapes: of Parameters, where they are not static.
        gathered: the constants that a GatherElements gives, of the first axis.
        asked: whether OpenVINO is asked; it is not where the answer is known to depend on chance.
    """

    code: str
    fires: bool
    case: Case
    parameters: tuple[int, ...] = ()
    shapes: Mapping[int, str] = field(default_factory=dict)
    gathered: tuple[int, ...] = ()
    asked: bool = True

    @property
    def id(self) -> str:
        return f"{self.code}-{'has it' if self.fires else 'has it not'}-{self.case.type}-{self.case.name}"


ROWS: list[Row] = []


def _row(
    code: str,
    fires: bool,
    id: str,
    type: str,
    since: int | str,
    *inputs: Any,
    parameters: Any = None,
    shapes: Any = None,
    gathered: tuple[int, ...] = (),
    asked: bool = True,
    **attributes: Any,
) -> None:
    made = case(type, since, *inputs, id=id, **attributes)
    chosen = tuple(range(len(made.inputs))) if parameters is None else tuple(parameters)
    ROWS.append(Row(code, fires, made, chosen, shapes or {}, gathered, asked))


def has(code: str, id: str, type: str, since: int | str, *inputs: Any, **rest: Any) -> None:
    _row(code, True, id, type, since, *inputs, **rest)


def has_not(code: str, id: str, type: str, since: int | str, *inputs: Any, **rest: Any) -> None:
    _row(code, False, id, type, since, *inputs, **rest)


class Rows:
    """Rows of one difference and one operation; ``rest`` is that of every row that has no other."""

    def __init__(self, code: str, type: str, since: int | str, **rest: Any) -> None:
        self._of, self._rest = (code, type, since), rest

    def has(self, id: str, *inputs: Any, **rest: Any) -> None:
        code, type, since = self._of
        has(code, id, type, since, *inputs, **(self._rest | rest))

    def has_not(self, id: str, *inputs: Any, **rest: Any) -> None:
        code, type, since = self._of
        has_not(code, id, type, since, *inputs, **(self._rest | rest))


def ints(name: str, *values: Any) -> Any:
    return typed(name, list(values))


FIRST = (0,)
SQUARE = {"low": 0, "high": 9}
STATES = (0, 1, 2)


def lstm_inputs(lengths: list[int]) -> tuple[Any, ...]:
    weights = random("f32", 1, 16, 3, seed=3), random("f32", 1, 16, 4, seed=4), random("f32", 1, 16, seed=5)
    return (
        random("f32", 2, 3, 3), random("f32", 2, 1, 4, seed=1), random("f32", 2, 1, 4, seed=2), typed("i32", lengths),
        *weights,
    )  # fmt: skip


FORWARD = {"hidden_size": "4", "direction": "forward"}
LSTM = FORWARD | {"activations": "sigmoid,tanh,tanh"}
