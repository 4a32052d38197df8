"""Memory of the processes: for many items and for few, and of weights that they share. On Linux, which says what is shared."""

from __future__ import annotations

import time
from pathlib import Path

from tests.batch import data
from tests.batch.command import start, workers


def flat(folder: Path) -> int:
    """The largest memory of a job of 1,000 items, and of one of 100,000; returns 1 if the second takes a fifth more."""
    model = data.products(folder, 64, 2, "tiny")
    peaks = {}
    for items in (1_000, 100_000):
        source = data.rows(folder / f"{items}.npy", items, 64)
        peaks[items] = _peak([model, str(source), "-o", str(folder / f"{items}.out.npy"), "--jobs", "2"])
        print(
            f"{items:,} items: {peaks[items][0] / 1e6:.1f} MB in the command, {peaks[items][1] / 1e6:.1f} MB in its largest process"
        )
    return int(any(many > 1.2 * few + 20e6 for few, many in zip(peaks[1_000], peaks[100_000], strict=True)))


def shared(folder: Path) -> int:
    """The weights of four processes with one model of 400 MB; returns 1 if all together hold them twice."""
    model = data.products(folder, 3200, 10, "large")
    source = data.rows(folder / "large.npy", 400, 3200)
    process = start([model, str(source), "-o", str(folder / "large.out.npy"), "--jobs", "4", "--batch-size", "1"])
    largest = (0, 0)
    while process.poll() is None:
        found = [_kilobytes(pid) for pid in workers(process)]
        largest = max(largest, (sum(pss for pss, _ in found), sum(rss for _, rss in found)))
        time.sleep(0.1)
    out, err = process.communicate()
    size = Path(model).with_suffix(".bin").stat().st_size
    print(
        f"weights of {size / 1e6:.0f} MB, four processes: PSS {largest[0] / 1e3:.0f} MB in all, RSS {largest[1] / 1e3:.0f} MB; {out}{err}"
    )
    return int(process.returncode != 0 or largest[0] * 1e3 > 2 * size)


def _peak(command: list[str]) -> tuple[int, int]:
    """The largest memory of the command and of any of its processes, in bytes."""
    process = start(command)
    own = others = 0
    while process.poll() is None:
        own = max(own, _kilobytes(process.pid)[1])
        others = max([others, *(_kilobytes(pid)[1] for pid in workers(process))])
        time.sleep(0.05)
    process.communicate()
    return own * 1000, others * 1000


def _kilobytes(pid: int) -> tuple[int, int]:
    """PSS and RSS; zeros for a process that has ended."""
    try:
        lines = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:])
    except (FileNotFoundError, ProcessLookupError):
        return 0, 0
    pss, rss = (int(lines.get(name, "0").split()[0]) for name in ("Pss", "Rss"))
    return pss, rss
