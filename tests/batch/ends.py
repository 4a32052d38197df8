"""A job that is ended many times at random moments and resumed: its output must be that of a job without an interruption."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path

from tests.batch import data
from tests.batch.command import finish, start, workers

_MODEL = "samples/digits/classifier.xml"


def run(folder: Path, items: int, ends: int, seed: int) -> int:
    """Returns how many problems there are."""
    source, chance = data.images(folder / "images", items), random.Random(seed)
    common = [_MODEL, str(source), "--scale", "255", "--jobs", "2", "--batch-size", "4"]
    began = time.monotonic()
    finish([*common, "-o", str(folder / "whole.npz")])
    seconds = time.monotonic() - began
    ended = folder / "ended.npz"
    command, kinds = [*common, "-o", str(ended), "--resume"], Counter[str]()
    for _ in range(ends):
        kind = chance.choice(["kill", "kill a worker", "interrupt", "terminate"])
        kinds[_end(command, kind, 0.5 + chance.uniform(0, 2 * seconds / ends))] += 1
    kinds[_full_disk(folder, common)] += 1
    finish(command)
    same = ended.read_bytes() == (folder / "whole.npz").read_bytes()
    print(
        f"{items} items, {seconds:.1f} s without an end; {dict(kinds)}: the output is {'the same' if same else 'ANOTHER'}"
    )
    return 0 if same and "problem" not in kinds else 1


def _end(command: list[str], kind: str, after: float) -> str:
    process = start(command)
    time.sleep(after)
    if kind == "kill a worker":
        for pid in workers(process)[:1]:
            os.kill(pid, signal.SIGKILL)
        time.sleep(0.5)
        process.kill()
    else:
        process.send_signal({"kill": signal.SIGKILL, "interrupt": signal.SIGINT, "terminate": signal.SIGTERM}[kind])
    out, err = process.communicate()
    if process.returncode in (0, -9, 130, 143):
        return "ended before" if process.returncode == 0 else kind
    print(f"PROBLEM: {kind} after {after:.2f} s: exit code {process.returncode}: {out}{err}")
    return "problem"


def _full_disk(folder: Path, common: list[str]) -> str:
    """A job on a file system as large as its output, which the parts fill, fails with a sentence, and is resumed where there is more room."""
    small, size = folder / "small", (folder / "whole.npz").stat().st_size
    small.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(small)], capture_output=True)
    if mounted.returncode:
        return "no full disk: it needs the right to mount"
    try:
        command = [*common, "-o", str(small / "out.npz"), "--resume"]
        process = start(command)
        out, err = process.communicate()
        if process.returncode != 3 or "Traceback" in err or ("No space left" not in err and "full" not in err):
            print(f"PROBLEM: full disk: exit code {process.returncode}: {out}{err}")
            return "problem"
        subprocess.run(["mount", "-o", "remount,size=1g", str(small)], check=True)
        finish(command)
        same = (small / "out.npz").read_bytes() == (folder / "whole.npz").read_bytes()
        return "full disk" if same else "problem"
    finally:
        subprocess.run(["umount", str(small)], check=True)
        shutil.rmtree(small)
