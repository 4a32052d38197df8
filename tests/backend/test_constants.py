"""What kernels made of constants is held as long as the constants."""

from __future__ import annotations

import gc
import threading
from typing import Any

import numpy as np

from irexec.backend.constants import ConstantSource, ConstantStore
from irexec.dtypes.elements import F32


def _source(number: float) -> ConstantSource:
    return ConstantSource.of(np.full(3, number, np.float32), F32)


def _doubled(array: np.ndarray) -> np.ndarray:
    return 2 * array


def _sum(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a + b


def test_a_constant_is_packed_once_for_each_packing() -> None:
    store, source, calls = ConstantStore(), _source(1), []

    def pack(array: np.ndarray) -> np.ndarray:
        calls.append(array)
        return _doubled(array)

    assert store.get([source], "doubled", pack) is store.get([source], "doubled", pack)
    assert store.get([source], "doubled again", pack) is not store.get([source], "doubled", pack)
    assert len(calls) == 2
    assert sorted(str(packing) for packing, _ in store.made()) == ["doubled", "doubled again"]


def test_what_was_made_dies_with_any_of_its_constants() -> None:
    store, first, second = ConstantStore(), _source(1), _source(2)
    store.get([first], "doubled", _doubled)
    store.get([first, second], "sum", _sum)
    del second
    assert [packing for packing, _ in store.made()] == ["doubled"]
    del first
    assert store.made() == []
    assert store._entries == store._keys == {}


def test_a_constant_at_the_address_of_a_dead_one_has_its_own_packing() -> None:
    store, kept = ConstantStore(), _source(100)
    for number in range(100):
        source = _source(number)
        assert store.get([source], "doubled", _doubled)[0] == 2 * number
        assert store.get([kept, source], "sum", _sum)[0] == 100 + number
        del source
    assert store.made() == []


class _CollectedWhileRead(dict[Any, Any]):
    """Entries that are read while the garbage collector runs, as it may wherever something is allocated."""

    def items(self) -> Any:
        for item in super().items():
            gc.collect()
            yield item


def test_constants_may_die_while_the_store_is_read() -> None:
    store = ConstantStore()
    store._entries = _CollectedWhileRead()
    kept = _source(0)
    store.get([kept], "doubled", _doubled)
    for number in range(1, 5):
        source = _source(number)
        store.get([source], "doubled", _doubled)
        source.made_of = (source,)
    del source
    store.made()
    assert len(store.made()) == 1


def test_constants_may_die_while_another_thread_holds_the_lock() -> None:
    """The finalizer does not wait for it; the next call releases what was made."""
    store, sources = ConstantStore(), [_source(1)]
    store.get(sources, "doubled", _doubled)
    thread = threading.Thread(target=sources.clear, daemon=True)
    with store._lock:
        thread.start()
        thread.join(10)
        assert not thread.is_alive()
    assert store.made() == []
    assert store._entries == {}
