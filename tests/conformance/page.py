"""The page docs/conformance.md: verdicts on several implementations, operation by operation.

    irexec conform --runtime openvino --cases 2 --json > openvino.json
    irexec conform --runtime "command:python tests/conformance/evaluate.py" --cases 2 --json > evaluate.json
    irexec conform --runtime onnxruntime --cases 2 --json > onnxruntime.json
    python -m tests.conformance.page openvino.json evaluate.json onnxruntime.json

evaluate.py is OpenVINO's own evaluation of operations, with which it folds constants.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from irexec.conformance import VERDICTS, CaseResult, Conformance
from irexec.records import Records

ROOT = Path(__file__).parents[2]
_TITLES = {"openvino": "OpenVINO CPU", "evaluate": "OpenVINO evaluate", "onnxruntime": "ONNX Runtime"}
_COMMAND = "irexec conform --runtime {runtime} --cases {cases} --json > {name}.json"
_TEXT = """# Conformance

Verdicts of [`irexec conform`](commands/conform.md) on other implementations, for {cases} cases of each version of each
operation. ONNX Runtime runs what irexec's exporter writes. A cell counts the cases by verdict; the command page says what a verdict
means. A case that is *outside* is a result that no correct implementation of the arithmetic gives; *open* is a
difference of the [portability table](reference/portability.md). The page was made by

```sh
{commands}
```

## In short

{summary}

## By operation

{table}
"""


def main() -> None:
    found = {path.stem: _read(path) for path in map(Path, sys.argv[1:])}
    (ROOT / "docs" / "conformance.md").write_text(page(found))


def _read(path: Path) -> Conformance:
    document = json.loads(path.read_text())
    cases = Records(CaseResult(**{**case, "codes": tuple(case["codes"])}) for case in document["cases"])
    return Conformance(document["runtime"], document["version"], document["arithmetic"], document["seed"], cases)


def page(found: dict[str, Conformance]) -> str:
    """The Markdown of the page, of verdicts by the name of a document."""
    columns = {name: held.by_operation() for name, held in found.items()}
    names = sorted({name for rows in columns.values() for name in rows})
    used = [verdict for verdict in VERDICTS if any(held.counts[verdict] for held in found.values())]
    summary = [
        [
            f"{_TITLES.get(name, name)} {held.version.partition('-')[0]}".strip(),
            *(str(held.counts[verdict]) for verdict in used),
        ]
        for name, held in found.items()
    ]
    table = [[name, *(_cell(columns[column].get(name), found[column], name) for column in columns)] for name in names]
    cases = max((max(sum(row.values()) for row in rows.values()) for rows in columns.values()), default=0)
    return _TEXT.format(
        cases=cases,
        summary=_table(["", *used], summary),
        table=_table(["Operation", *(_TITLES.get(name, name) for name in columns)], table),
        commands="\n".join(_commands(found, cases)),
    )


def _commands(found: dict[str, Conformance], cases: int) -> Iterator[str]:
    for name, held in found.items():
        runtime = f'"command:python tests/conformance/{name}.py"' if ":" in held.runtime else held.runtime
        yield _COMMAND.format(runtime=runtime, cases=cases, name=name)
    yield f"python -m tests.conformance.page {' '.join(f'{name}.json' for name in found)}"


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
    main()
