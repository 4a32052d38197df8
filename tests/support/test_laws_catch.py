"""Each law catches the operations that break it: a law that nothing can fail proves nothing."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest

from irexec.backend import registry as fast_kernels
from irexec.backend.kernel import Candidate, Kernel, KernelContext
from irexec.dtypes.elements import F32
from irexec.errors import OpError, check
from irexec.ir.dims import Dim
from irexec.ir.facts import Fact
from irexec.schema import registry
from irexec.testing import Case, case, laws


def _good(x: np.ndarray) -> np.ndarray:
    return np.add(x, 1).astype(x.dtype) if x.dtype != object else np.add(x, 1)


def _wrong(x: np.ndarray) -> np.ndarray:
    return x + x.dtype.type(2)


def _wide(x: np.ndarray) -> np.ndarray:
    return _good(x).astype(np.float64)


def _flat(x: np.ndarray) -> np.ndarray:
    return _good(x).ravel()


def _twice(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return _good(x), _good(x)


def _same(x: np.ndarray) -> np.ndarray:
    return x


def _part(x: np.ndarray) -> np.ndarray:
    return x[::-1]


def _over_its_input(x: np.ndarray) -> np.ndarray:
    x += 1
    return x.copy()


def _over_what_it_is_told_not_to(x: np.ndarray) -> np.ndarray:
    result = _good(x)
    x.flags.writeable = True
    x += 1
    return result


def _in_order_of_memory(x: np.ndarray) -> np.ndarray:
    return _good(x.ravel(order="K")).reshape(x.shape)


def _as_if_without_gaps(x: np.ndarray) -> np.ndarray:
    if min(x.strides) < 0:
        return _good(x)
    return _good(np.lib.stride_tricks.as_strided(x, x.shape, np.empty(x.shape, x.dtype).strides))


def _only_ahead(x: np.ndarray) -> np.ndarray:
    return _good(x) + (x.strides[0] < 0)


_CALLS = itertools.count()
_SCRATCH: dict[tuple[int, ...], np.ndarray] = {}


def _never_the_same(x: np.ndarray) -> np.ndarray:
    return x + np.float32(1 + next(_CALLS))


def _in_one_place(x: np.ndarray) -> np.ndarray:
    return np.add(x, next(_CALLS), out=_SCRATCH.setdefault(x.shape, np.empty_like(x)))


def _exact(x: Fact) -> Fact:
    return Fact(x.element, x.shape)


def _loose(x: Fact) -> Fact:
    return Fact(x.element, None)


def _untyped(x: Fact) -> Fact:
    return Fact(None, x.shape)


def _another_type(x: Fact) -> Fact:
    return Fact(F32, x.shape)


def _another_size(x: Fact) -> Fact:
    return Fact(x.element, (*(x.shape or ())[:-1], 7))


def _guesses(x: Fact) -> Fact:
    return Fact(x.element, x.shape if x.is_static else (1,))


def _takes_the_least(x: Fact) -> Fact:
    return Fact(
        x.element, None if x.shape is None else tuple(size.lo if isinstance(size, Dim) else size for size in x.shape)
    )


def _asks_for_the_rank(x: Fact) -> Fact:
    check(x.shape is not None, "the rank is not known")
    return _exact(x)


def _asks_for_the_type(x: Fact) -> Fact:
    assert x.element is not None
    return _exact(x)


def _forgets_the_type(x: Fact) -> Fact:
    return _exact(x) if x.is_static else Fact(None, x.shape)


def _trips_over_bounds(x: Fact) -> Fact:
    return Fact(
        x.element,
        x.shape,
        None if x.value is None else np.array([int(n) + 1 for n in x.value.ravel()]).reshape(x.value.shape),
    )


@dataclasses.dataclass(frozen=True)
class Broken:
    """An operation that should add 1, and the law that must object to it."""

    law: Callable[..., None]
    kernel: Callable[..., Any] = _good
    facts: Callable[..., Any] = _exact
    bind: Callable[..., Any] | None = None
    dtype: type = np.float32
    symbolic: bool = False
    raises: type[Exception] = AssertionError

    @property
    def id(self) -> str:
        odd = next(
            f for f in (self.bind, self.kernel, self.facts, self.kernel) if f is not None and f not in (_good, _exact)
        )
        return f"{self.law.__name__[:5]}{odd.__name__}"


def _follows_wrongly(x: np.ndarray) -> np.ndarray:
    return np.add(x, 5) if x.dtype == object else _good(x)


def _cannot_be_followed(x: np.ndarray) -> np.ndarray:
    return x + np.iinfo(x.dtype).max * 0 + 1


BROKEN = [
    Broken(laws.law_1_gives, _wrong),
    Broken(laws.law_1_gives, _wide),
    Broken(laws.law_1_gives, _flat),
    Broken(laws.law_1_gives, _twice, raises=ValueError),
    Broken(laws.law_2_leaves_inputs_alone, _same),
    Broken(laws.law_2_leaves_inputs_alone, _part),
    Broken(laws.law_2_leaves_inputs_alone, _over_its_input, raises=ValueError),
    Broken(laws.law_2_leaves_inputs_alone, _over_what_it_is_told_not_to),
    Broken(laws.law_3_exact_facts, facts=_loose),
    Broken(laws.law_3_exact_facts, facts=_untyped),
    Broken(laws.law_3_exact_facts, facts=_another_type, dtype=np.int64),
    Broken(laws.law_3_exact_facts, facts=_another_size),
    Broken(laws.law_4_facts_admit, facts=_guesses),
    Broken(laws.law_4_facts_admit, facts=_takes_the_least),
    Broken(laws.law_4_facts_admit, facts=_forgets_the_type),
    Broken(laws.law_4_facts_admit, facts=_asks_for_the_rank, raises=OpError),
    Broken(laws.law_4_facts_admit, facts=_asks_for_the_type),
    Broken(laws.law_4_facts_admit, facts=_trips_over_bounds, dtype=np.int64, raises=OpError),
    Broken(laws.law_4_facts_admit, _follows_wrongly, dtype=np.int64, symbolic=True),
    Broken(laws.law_4_facts_admit, _cannot_be_followed, dtype=np.int64, symbolic=True, raises=ValueError),
    Broken(laws.law_5_layouts, _in_order_of_memory),
    Broken(laws.law_5_layouts, _as_if_without_gaps),
    Broken(laws.law_5_layouts, _only_ahead),
    Broken(laws.law_6_runs, bind=_wrong),
    Broken(laws.law_7_again, _never_the_same),
    Broken(laws.law_7_again, _in_one_place),
]


class _Bound(Kernel):
    """A fast kernel that gives what a function does."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__("broken")
        self._function = function

    def run(self, inputs: Sequence[Any], outputs: Sequence[Any], context: KernelContext) -> None:
        outputs[0][...] = self._function(*inputs)


def _row(dtype: type) -> Case:
    values = np.arange(6, dtype=dtype).reshape(2, 3)
    return case("Broken", "test", values, gives=(values + 1).astype(dtype), id="row")


@pytest.fixture
def define() -> Iterator[Callable[[Broken], Case]]:
    registry.definitions()

    def register(broken: Broken) -> Case:
        definition = registry.op("Broken", "test", symbolic=broken.symbolic)(broken.kernel)
        definition.shape_rule(broken.facts)
        if broken.bind is not None:
            fast_kernels.kernels("Broken", "test")(lambda task: [Candidate(0.0, partial(_Bound, broken.bind))])
        return _row(broken.dtype)

    yield register
    registry._REGISTRY.pop("Broken", None)
    registry.resolve.cache_clear()
    fast_kernels._CANDIDATES.pop(("Broken", "test"), None)
    _SCRATCH.clear()


@pytest.mark.parametrize("broken", BROKEN, ids=lambda broken: broken.id)
def test_is_caught(broken: Broken, define: Callable[[Broken], Case]) -> None:
    row = define(broken)
    with pytest.raises(broken.raises):
        broken.law(row, row.gives)


@pytest.mark.parametrize("dtype", [np.float32, np.int64])
@pytest.mark.parametrize("law", laws.LAWS, ids=lambda law: law.__name__)
def test_what_is_sound_passes(law: Callable[..., None], dtype: type, define: Callable[[Broken], Case]) -> None:
    row = define(Broken(law, dtype=dtype, symbolic=True))
    law(row, row.gives)


def test_every_law_names_those_that_are_broken(define: Callable[[Broken], Case]) -> None:
    row = define(Broken(laws.law_1_gives, _wrong))
    with pytest.raises(ExceptionGroup) as caught:
        laws.every_law(row, row.gives)
    notes = [note for error in caught.value.exceptions for note in error.__notes__]
    assert notes[0] == f"{row.id} breaks law_1_gives" and f"{row.id} breaks law_6_runs" in notes


def test_every_law_raises_the_error_of_the_law_that_is_broken(define: Callable[[Broken], Case]) -> None:
    row = define(Broken(laws.law_3_exact_facts, facts=_loose))
    with pytest.raises(AssertionError) as caught:
        laws.every_law(row, row.gives)
    assert caught.value.__notes__ == [f"{row.id} breaks law_3_exact_facts"]


def test_every_law_is_tried() -> None:
    assert {broken.law for broken in BROKEN} == set(laws.LAWS)
