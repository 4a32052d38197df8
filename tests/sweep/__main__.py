"""The command line of all kinds: see tests.sweep."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import shlex
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from tests import sweep
from tests.sweep.kind import Kind, chosen
from tests.sweep.running import run

KINDS = {
    "bounds": "tests.bounds.sweep",
    "bounds-graphs": "tests.bounds.graphs",
    "compare": "tests.compare_sweep.ir",
    "compare-graphs": "tests.compare_sweep.graphs",
    "compare-exporters": "tests.compare_sweep.exporters",
    "compare-onnx": "tests.compare_sweep.onnx",
    "compare-openvino": "tests.compare_sweep.openvino",
    "contrib": "tests.contrib_sweep.sweep",
    "diff": "tests.diff_sweep.judging",
    "graphs": "tests.graphs.openvino",
    "inside": "tests.inside_sweep",
    "integers": "tests.integer_sweep.sweep",
    "judge": "tests.judge_sweep.networks",
    "judge-graphs": "tests.bounds.judged_graphs",
    "judge-language": "tests.judge_sweep.language",
    "judge-modules": "tests.judge_sweep.modules",
    "judge-recordings": "tests.judge_sweep.recordings",
    "legacy": "tests.legacy_sweep.sweep",
    "models": "tests.contrib_sweep.models",
    "operations": "tests.oracle.sweep",
    "optimized": "tests.optimized_sweep",
    "reduce": "tests.reduce_sweep",
    "release-networks": "tests.release_sweep.sweep:Networks",
    "releases": "tests.release_sweep.sweep",
    "to-onnx": "tests.to_onnx.sweep",
    "to-onnx-random": "tests.to_onnx.random_sweep",
    "tokenizers": "tests.tokenizers_sweep.sweep",
    "torch": "tests.torch_sweep",
}
"""Module of each kind, whose class ``Sweep`` defines it, or another class."""
_SHOWN = 4
"""Failing cases of a name that are printed whole."""


def main(words: Sequence[str] | None = None) -> int:
    """Run the cases of a kind; 1 if one fails or there are none."""
    words = sys.argv[1:] if words is None else list(words)
    if not words or words[0] not in KINDS:
        print(sweep.__doc__, "kinds:", *KINDS, sep="\n    ")
        return 2 if words[:1] not in ([], ["--help"]) else 0
    # Before NumPy is imported by what is loaded: cases are small, and several processes run.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    kind = _kind(words[0], words[1:])
    try:
        return _swept(words, kind)
    finally:
        kind.close()


def _kind(name: str, words: Sequence[str]) -> Kind:
    path, _, of_module = KINDS[name].partition(":")
    module = importlib.import_module(path)
    made: type[Kind] = getattr(module, of_module or "Sweep")
    parser = argparse.ArgumentParser(
        f"python -m tests.sweep {name}",
        description=module.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--only", default="", help="names, or beginnings of names, with commas between them; default: all")
    add("--seed", type=int, default=0, help="the number of the first case of each name; default: 0")
    amount = parser.add_mutually_exclusive_group()
    amount.add_argument("--cases", type=int, default=made.cases, help=f"of each name; default: {made.cases}")
    amount.add_argument("--seconds", type=float, help="for all names together")
    amount.add_argument(
        "--case", type=int, metavar="NUMBER", help="this case alone, as it is printed for one that fails"
    )
    add("--workers", type=int, default=1, help="processes, of kinds whose cases run in processes of their own")
    add("--verbose", action="store_true", help="also the texts of cases that do not fail")
    add("--json", metavar="FILE", help="write all outcomes")
    made.add_options(parser.add_argument)
    return made(parser.parse_args(words))


def _swept(words: Sequence[str], kind: Kind) -> int:
    options = kind.options
    total: Counter[str] = Counter()
    first: dict[str, str] = {}
    rows: list[dict[str, object]] = []
    failed = 0
    for name, start, outcomes in run(kind, chosen(kind.names(), options.only)):
        counts, texts, of_name = Counter[str](), Counter[tuple[str, str]](), 0
        for number, outcome in outcomes:
            counts[outcome.kind] += 1
            first.setdefault(outcome.kind, f"--only {shlex.quote(name)} --case {number}")
            rows.append({"name": name, "number": number, **asdict(outcome)})
            if outcome.fails:
                of_name += 1
                if of_name <= _SHOWN or options.verbose:
                    print(f"--only {shlex.quote(name)} --case {number}: {outcome.kind}: {outcome.text}", flush=True)
            elif outcome.text and (options.verbose or outcome.kind in kind.told):
                texts[outcome.kind, outcome.text] += 1
        print(f"{name}: {_list(counts)}, {time.monotonic() - start:.0f} s", flush=True)
        for (what, text), count in texts.most_common():
            print(f"    {count} {what}: {text[:300]}")
        total += counts
        failed += of_name
    print(f"\n{failed} of {total.total()} fail")
    for what, count in total.most_common():
        print(f"{count:7}  {what}  ({first[what]})")
    if options.json:
        Path(options.json).write_text(json.dumps(rows, indent=1, default=str), "utf-8")
    return int(failed > 0 or not total)


def _list(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {what}" for what, count in sorted(counts.items())) or "nothing"


if __name__ == "__main__":
    sys.exit(main())
