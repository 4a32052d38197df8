"""The control groups of this process, by which Linux limits containers and services."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path


def control_groups(root: Path, controller: str) -> Iterator[Path]:
    """The control groups of the process that may limit ``controller``, each followed by its ancestors.

    Args:
        root: where ``proc`` and ``sys`` are.
        controller: "cpu" or "memory".
    """
    for line in text_of(root / "proc/self/cgroup").splitlines():
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
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
