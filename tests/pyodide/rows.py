"""Run by Pyodide: rows of every operation through the laws; the last expression is the number of rows that fail.

Four commands read a model, with expat, since lxml is not loaded.
"""

from __future__ import annotations

from collections import Counter
from time import monotonic

from irexec.cli.main import run
from irexec.testing import Case
from irexec.testing.laws import Share, every_law, law_1_gives, law_3_exact_facts, law_6_runs
from tests.support.cases import families
from tests.support.goldens import recorded

# Rows of an operation that run by all three laws, and those that only compute.
_BY_ALL, _COMPUTED = 4, 12

started = monotonic()
failed, held, met = [], 0, Counter[tuple[str, int | str]]()
for family, rows in families().items():
    for row in rows:
        if not isinstance(row, Case) or met[row.type, row.since] >= _COMPUTED:
            continue
        met[row.type, row.since] += 1
        laws = (law_1_gives, law_3_exact_facts, law_6_runs)[: None if met[row.type, row.since] <= _BY_ALL else 1]
        expected = row.gives if row.gives is not None else recorded(family, row.id, row.digest)
        try:
            every_law(row, expected, laws, Share(0, 40))
            held += 1
        except Exception as error:
            failed.append(row.id)
            print(f"{row.id}: {type(error).__name__}: {error}"[:500])

model = "/project/samples/digits/classifier.xml"
for words in (
    ["validate", model],
    ["inspect", "--ops", model],
    ["infer", model, "-i", "random"],
    ["graph", model, "-o", "/tmp/graph.html"],
):
    code = run(words)
    if code:
        failed.append(" ".join(words))
        print(f"irexec {failed[-1]}: exit code {code}")
print(f"{len(met)} versions of operations, {held} rows hold, {len(failed)} fail, {monotonic() - started:.0f} s")
len(failed)
