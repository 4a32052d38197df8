"""The memory that is available, by the system and by control groups."""

from __future__ import annotations

from pathlib import Path

import pytest

from irexec.backend.system import available_memory
from tests.support.files import write_tree

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
        "the system",
        "no limit",
        "limit",
        "limit of the group around",
        "above the limit",
        "cached files",
        "version 1",
        "version 1 without a limit",
    ],
)
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


def test_a_system_that_does_not_say(tmp_path: Path) -> None:
    assert available_memory(tmp_path) > 0
