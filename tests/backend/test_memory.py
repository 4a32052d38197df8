"""Memory: constants that kernels packed, what the system has available, and what goes back to it."""

from __future__ import annotations

import gc
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irexec
from irexec.backend.constants import ConstantSource, ConstantStore
from irexec.backend.system import ASSUMED, available_memory, return_free_memory
from irexec.dtypes.elements import F32
from irexec.testing import case, model_of, random
from tests.support.paths import write_tree


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


# The memory that is available, by the system and by control groups.


MEMINFO = {"proc/meminfo": "MemTotal:  8000 kB\nMemAvailable:    4000 kB\n"}
V2 = "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw"
V1 = "32 31 0:29 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory"
_GROUP = "sys/fs/cgroup"
KB = 1 << 10


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, 4000 * KB),
        ({"proc/self/cgroup": "0::/a", f"{_GROUP}/a/memory.max": "max", f"{_GROUP}/a/memory.current": "5"}, 4000 * KB),
        ({"proc/self/cgroup": "0::/a", f"{_GROUP}/a/memory.max": "3000", f"{_GROUP}/a/memory.current": "1000"}, 2000),
        ({"proc/self/cgroup": "0::/a/b", f"{_GROUP}/a/memory.max": "3000", f"{_GROUP}/a/memory.current": "2500"}, 500),
        ({"proc/self/cgroup": "0::/a", f"{_GROUP}/a/memory.max": "3000", f"{_GROUP}/a/memory.current": "4000"}, 0),
        (
            {
                "proc/self/cgroup": "0::/a",
                f"{_GROUP}/a/memory.max": "3000",
                f"{_GROUP}/a/memory.current": "2900",
                f"{_GROUP}/a/memory.stat": "anon 7\ninactive_file 1500",
            },
            1600,
        ),
        (
            {
                "proc/self/cgroup": "3:cpu:/x\n2:memory:/a",
                "proc/self/mountinfo": V1,
                f"{_GROUP}/memory/a/memory.limit_in_bytes": "3000",
                f"{_GROUP}/memory/a/memory.usage_in_bytes": "100",
            },
            2900,
        ),
        (
            {
                "proc/self/cgroup": "2:memory:/a",
                "proc/self/mountinfo": V1,
                f"{_GROUP}/memory/a/memory.limit_in_bytes": "9223372036854771712",
                f"{_GROUP}/memory/a/memory.usage_in_bytes": "9223372036854771700",
            },
            4000 * KB,
        ),
    ],
    ids=[
        "the system", "no limit", "limit", "limit of the group around", "above the limit", "cached files",
        "version 1", "version 1 without a limit",
    ],
)  # fmt: skip
def test_available_memory(files: dict[str, str], expected: int, tmp_path: Path) -> None:
    assert available_memory(write_tree(tmp_path, {**MEMINFO, "proc/self/mountinfo": V2, **files})) == expected


def test_limits_that_are_set_later_and_another_group_count(tmp_path: Path) -> None:
    """The folders of groups are found once, their limits are read each time."""
    group = {f"{_GROUP}/a/memory.max": "max", f"{_GROUP}/a/memory.current": "1000", "proc/self/cgroup": "0::/a"}
    write_tree(tmp_path, {**MEMINFO, "proc/self/mountinfo": V2, **group})
    assert available_memory(tmp_path) == 4000 * KB
    (tmp_path / _GROUP / "a" / "memory.max").write_text("3000")
    assert available_memory(tmp_path) == 2000
    other = {f"{_GROUP}/b/memory.max": "1500", f"{_GROUP}/b/memory.current": "1000", "proc/self/cgroup": "0::/b"}
    write_tree(tmp_path, other)
    assert available_memory(tmp_path) == 500


def test_a_system_that_does_not_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert available_memory(tmp_path) > 0
    monkeypatch.setattr("os.sysconf", lambda name: -248 if name == "SC_PHYS_PAGES" else 65536, raising=False)
    assert available_memory(tmp_path) == ASSUMED


# Freed memory goes back to the system after constants were packed, and only then.


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
