"""Random models of one layer, exported and run: ``python -m tests.to_onnx.random_sweep [TYPE ...] [--count=13] [--seed=0]``.

Each case is exported as the rows of ``tests.to_onnx.sweep`` are, and compared with what OpenVINO gives for it. Each
operation runs in a process of its own, since a runtime may take it down. Cases that OpenVINO refuses are left out.
"""

from __future__ import annotations

import multiprocessing
import sys
from collections import Counter
from multiprocessing.connection import Connection

from converters.ir_to_onnx.refusals import ExportError
from irexec.testing import Case
from irexec.testing.laws import kernel, read_only
from irexec.testing.random_cases import random_cases, seeded
from tests.oracle.openvino_runner import Refused, run_case
from tests.to_onnx.sweep import exported

_PATIENCE = 300.0
Outcome = tuple[str, str]


def _outcome(pair: tuple[str, int], seed: int) -> Outcome:
    row = random_cases()[pair](seeded(*pair, seed))
    try:
        expected = run_case(row)
    except Refused:
        return "OpenVINO refuses", ""
    try:
        counts = exported(row, expected)
    except ExportError as error:
        return "refused", error.layers[0].reason
    except Exception as error:
        # Anything that a runtime, the checker or the comparison raises is a failure of the case.
        text = " ".join(str(error).split())[:300]
        kind = "as the reference kernel" if _is_as_kernel(row) else "failed"
        return kind, f"{[str(x.element) for x in row.inputs]} {row.attributes}: {type(error).__name__}: {text}"
    return ("onnxruntime" if counts["onnxruntime"] else "onnx" if counts["onnx"] else "rank"), ""


def _is_as_kernel(row: Case) -> bool:
    """Whether the exported case gives what the reference kernel gives, where OpenVINO gives something else."""
    try:
        exported(row, kernel(row, read_only(row)))
    except Exception:
        # As above.
        return False
    return True


def _serve(pipe: Connection, pair: tuple[str, int], seeds: range) -> None:
    for seed in seeds:
        pipe.send(_outcome(pair, seed))
    pipe.send(None)


def _outcomes(pair: tuple[str, int], seeds: range) -> list[Outcome]:
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs, pair, seeds), daemon=True)
    process.start()
    theirs.close()
    found: list[Outcome] = []
    try:
        while True:
            if not ours.poll(_PATIENCE):
                found.append(("crashed", "no answer"))
                return found
            outcome = ours.recv()
            if outcome is None:
                return found
            found.append(outcome)
    except EOFError:
        return [*found, ("crashed", "the process died")]
    finally:
        process.kill()
        process.join()


def main() -> None:
    """Run the sweep; print every refusal and failure, then counts."""
    names = [a for a in sys.argv[1:] if not a.startswith("-")]
    options = dict(a.removeprefix("--").split("=") for a in sys.argv[1:] if a.startswith("--"))
    first, count = int(options.get("seed", 0)), int(options.get("count", 13))
    total: Counter[str] = Counter()
    for pair in sorted(random_cases()):
        if names and pair[0] not in names:
            continue
        for i, (kind, why) in enumerate(_outcomes(pair, range(first, first + count))):
            total[kind] += 1
            if why:
                print(f"{pair[0]}-{pair[1]} seed {first + i} {kind}: {why}", flush=True)
    print(dict(total), sum(total.values()))


if __name__ == "__main__":
    main()
