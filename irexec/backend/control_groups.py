"""The control groups of this process, by which Linux limits containers and services."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

_LIMITS = {"memory": ("memory.max", "memory.limit_in_bytes"), "cpu": ("cpu.max", "cpu.cfs_quota_us")}
"""The files of a group, of version 2 and of version 1, that may limit a controller."""


def control_groups(root: Path, controller: str) -> tuple[Path, ...]:
    """The control groups of the process that may limit ``controller``, each followed by its ancestors.

    Args:
        root: where ``proc`` and ``sys`` are.
        controller: "cpu" or "memory".
    """
    groups = text_of(root / "proc/self/cgroup")
    return _with_limits(root, controller, groups)


@lru_cache(8)
def _with_limits(root: Path, controller: str, groups: str) -> tuple[Path, ...]:
    """The folders that have files of limits. They are found once: each model that is compiled asks for its memory."""
    found = dict.fromkeys(_folders(root, controller, groups))
    return tuple(folder for folder in found if any((folder / name).exists() for name in _LIMITS[controller]))


def _folders(root: Path, controller: str, groups: str) -> Iterator[Path]:
    for line in groups.splitlines():
        _, controllers, path = (*line.split(":", 2), "", "")[:3]
        if controllers and controller not in controllers.split(","):
            continue
        for mounted, mount in _mounts(root, controller if controllers else ""):
            yield from _upwards(mount, _below(path, mounted))


def _below(path: str, mounted: str) -> str:
    """The path of a group relative to the mounted group; a container often has its own group mounted as root."""
    if mounted == "/":
        return path.strip("/")
    return path.removeprefix(mounted).strip("/") if path == mounted or path.startswith(f"{mounted}/") else ""


def _upwards(mount: Path, path: str) -> Iterator[Path]:
    parts = [part for part in path.split("/") if part not in ("", ".", "..")]
    for count in range(len(parts), -1, -1):
        yield mount.joinpath(*parts[:count])


def _mounts(root: Path, controller: str) -> Iterator[tuple[str, Path]]:
    """The group that is mounted and where, of version 1 for a controller, of version 2 for ""."""
    for line in text_of(root / "proc/self/mountinfo").splitlines():
        before, _, after = line.partition(" - ")
        fields, kind = before.split(), after.split()
        if len(fields) < 5 or len(kind) < 3:
            continue
        if kind[0] == "cgroup2" if not controller else kind[0] == "cgroup" and controller in kind[2].split(","):
            yield fields[3], root / fields[4].replace("\\040", " ").lstrip("/")


def text_of(path: Path) -> str:
    """The text of a file; "" if it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return ""
