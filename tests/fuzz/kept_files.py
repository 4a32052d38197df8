"""Files that irexec writes and reads again, damaged: dumps, ranges, the manifest of a job, the answers of a reduction."""

from __future__ import annotations

import functools
import json
import random
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from irexec.tools.reduce.output import FORMAT
from tests.fuzz import odd
from tests.fuzz.mutate_bytes import mutate
from tests.support.processes import said

_WRITE = [
    ["infer", "m.xml", "-i", "a.npy", "--dump-layers", "dump", "--record-range", "ranges.json"],
    ["batch", "m.xml", "a.npy", "-o", "job.jsonl", "--jobs", "1"],
    ["batch", "m.xml", "a.npy", "-o", "job/", "--format", "npy", "--jobs", "1"],
]
READ = [
    ["compare", "dump", "m.xml", "-i", "a.npy"],
    ["infer", "m.xml", "-i", "a.npy", "--dump-layers", "dump"],
    ["infer", "m.xml", "-i", "a.npy", "--trap", "range=ranges.json"],
    ["infer", "m.xml", "-i", "a.npy", "--record-range", "ranges.json"],
    ["batch", "m.xml", "a.npy", "-o", "job.jsonl", "--jobs", "1", "--resume"],
    ["batch", "m.xml", "a.npy", "-o", "job/", "--format", "npy", "--jobs", "1", "--resume"],
    ["reduce", "m.xml", "-o", "small.xml", "--trap", "nan", "--resume"],
    ["reduce", "m.xml", "-o", "small.xml", "--trap", "nan"],
]


@functools.cache
def written(model: bytes, weights: bytes, array: bytes) -> Mapping[str, bytes]:
    """What the commands write for this model and its input, by path."""
    given = {"m.xml": model, "m.bin": weights, "a.npy": array}
    # A worker of the fuzzer may have no such folder yet. It is daemonic, and irexec batch starts processes: each command is one.
    Path(tempfile.gettempdir()).mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        for name, data in given.items():
            Path(folder, name).write_bytes(data)
        for words in _WRITE:
            said(Path(folder), "-m", "irexec", *words)
        paths = sorted(path for path in Path(folder).rglob("*") if path.is_file())
        found = {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths if path.name not in given}
    found["small.reduce"] = json.dumps({"format": FORMAT}).encode() + b"\nab fails\ncd passes\n"
    return found


def damaged(files: Mapping[str, bytes], rng: random.Random) -> dict[str, bytes]:
    """The files, one of them with a few changes, or without its bytes."""
    name = rng.choice([*files])
    changed = {**files, name: _changed(name, files[name], rng)}
    if rng.random() < 0.1:
        del changed[rng.choice([*files])]
    return changed


def _changed(name: str, data: bytes, rng: random.Random) -> bytes:
    if name.endswith(".json") and rng.random() < 0.8:
        document = _odd_json(json.loads(data), rng)
        return json.dumps(document).encode("utf-8", "replace")
    if rng.random() < 0.05:
        return rng.choice([b"", b"[" * 100_000, b"{}", b"[]", b"null", b"\xff\xfe"])
    return mutate(data, rng)


def _odd_json(document: Any, rng: random.Random) -> Any:
    """The document with another value somewhere, or without one."""
    *path, last = rng.choice([*_paths(document)][1:])
    inner = document
    for key in path:
        inner = inner[key]
    if rng.random() < 0.2:
        del inner[last]
    else:
        inner[last] = rng.choice(
            [None, True, [], {}, [None], "", *odd.TEXTS, *odd.INTEGERS, *odd.FLOATS, 10**400, "x" * 5000, [1, 2, 3]]
        )
    return document


def _paths(document: Any, path: Sequence[Any] = ()) -> Iterator[Sequence[Any]]:
    yield path
    keys = [*document] if isinstance(document, dict) else range(len(document)) if isinstance(document, list) else ()
    for key in keys:
        yield from _paths(document[key], (*path, key))
