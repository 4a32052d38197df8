"""The page docs/conformance.md: verdicts on three implementations, operation by operation.

    python -m tests.conformance.page [--cases 3] [--seed N] [--with openvino,evaluate,onnxruntime]

"evaluate" is OpenVINO's own evaluation of operations, with which it folds constants: tests/conformance/evaluate.py.
A runtime that is left out keeps nothing: the page has the columns of the last call.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections import Counter
from pathlib import Path

from irexec.cli.progress import progress_bar
from irexec.conformance import Conformance, ConformOptions, conform
from irexec.conformance.result import VERDICTS

ROOT = Path(__file__).parents[2]
_COLUMNS = {
    "openvino": ("openvino", "OpenVINO CPU"),
    "evaluate": (
        f"command:{shlex.quote(sys.executable)} {shlex.quote(str(Path(__file__).with_name('evaluate.py')))}",
        "OpenVINO evaluate",
    ),
    "onnxruntime": ("onnxruntime", "ONNX Runtime"),
}  # fmt: skip
_TEXT = """# Conformance

What three implementations give for the corpus of [`irexec conform`](commands/conform.md), {cases} cases of each version
of each operation: OpenVINO's CPU plugin, OpenVINO's own evaluation of single operations, with which it folds constants,
and ONNX Runtime, by way of irexec's exporter. A cell counts the cases by verdict; the command page says what a verdict
means. A case that is *outside* is a result that no correct implementation of the arithmetic gives; *open* is a
difference of the [portability table](reference/portability.md). The page was made by

```console
$ {command}
```

## In short

{summary}

## By operation

{table}
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--with", dest="columns", default=",".join(_COLUMNS))
    args = parser.parse_args()
    options = ConformOptions(cases=args.cases, seed=args.seed)
    found: dict[str, Conformance] = {}
    for name in args.columns.split(","):
        runtime, title = _COLUMNS[name]
        with progress_bar(title, 1) as advance:
            held = conform(runtime, options, advance)
        found[f"{title} {held.version.partition('-')[0]}".strip()] = held
    (ROOT / "docs" / "conformance.md").write_text(page(found, f"python -m tests.conformance.page --cases {args.cases}"))
    return 0


def page(found: dict[str, Conformance], command: str) -> str:
    """The Markdown of the page, of verdicts by the name of a column."""
    columns = {name: held.by_operation() for name, held in found.items()}
    names = sorted({name for rows in columns.values() for name in rows})
    used = [verdict for verdict in VERDICTS if any(held.counts[verdict] for held in found.values())]
    summary = [[name, *(str(held.counts[verdict]) for verdict in used)] for name, held in found.items()]
    table = [[name, *(_cell(columns[column].get(name), found[column], name) for column in columns)] for name in names]
    cases = max((max(sum(row.values()) for row in rows.values()) for rows in columns.values()), default=0)
    return _TEXT.format(
        cases=cases, command=command, summary=_table(["", *used], summary), table=_table(["Operation", *columns], table)
    )


def _cell(counts: Counter[str] | None, held: Conformance, name: str) -> str:
    if counts is None:
        return ""
    codes = sorted({code for case in held.cases if f"{case.type}-{case.since}" == name for code in case.codes})
    parts = (f"{counts[verdict]} {verdict}" for verdict in VERDICTS if counts[verdict])
    return ", ".join(parts) + (f" ({', '.join(codes)})" if codes else "")


def _table(heads: list[str], rows: list[list[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    sys.exit(main())
