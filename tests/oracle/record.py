"""Record what OpenVINO answers to the rows of the tables: python -m tests.oracle.record [family ...] [--only text] [--new]

Rows that say themselves what they give are not asked. Answers to rows that are gone are dropped.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np

from irexec.testing import Case, FactsCase, Row
from tests.oracle.openvino_runner import Refused, infer_case, run_case
from tests.support import goldens
from tests.support.cases import families


def _answer(row: Row, remarks: list[str]) -> tuple[np.ndarray, ...]:
    if isinstance(row, Case):
        return run_case(row, remarks)
    if isinstance(row, FactsCase):
        return tuple(np.array(text) for text in infer_case(row))
    return ()


def record(family: str, rows: list[Row], only: str, new: bool) -> int:
    """Record one family, or keep what is known but for rows of ``only`` or without an answer; returns how many rows OpenVINO refused."""
    arrays: dict[str, np.ndarray] = {}
    remarks: list[str] = []
    refused = 0
    for row in rows:
        if not isinstance(row, Case | FactsCase) or row.gives is not None:
            continue
        known = _known(family, row)
        if (only and only not in row.id) or (new and known):
            arrays.update(known)
            continue
        try:
            answer = _answer(row, remarks)
        except Refused as error:
            refused += 1
            print(f"  refused {row.id}: {error}")
            continue
        except Exception as error:
            refused += 1
            print(f"  failed {row.id}: {type(error).__name__}: {error}")
            continue
        arrays.update({goldens.key(row.id, row.digest, i): array for i, array in enumerate(answer)})
    goldens.store(family, {name: a.astype(str) if a.dtype == object else a for name, a in arrays.items()})
    for remark in remarks:
        print(f"  {remark}")
    print(f"{family}: {len(arrays)} answers, {refused} refused")
    return refused


def _known(family: str, row: Case | FactsCase) -> dict[str, np.ndarray]:
    try:
        return {
            goldens.key(row.id, row.digest, i): array
            for i, array in enumerate(goldens.recorded(family, row.id, row.digest))
        }
    except goldens.StaleGolden:
        return {}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("families", nargs="*")
    parser.add_argument("--only", default="", help="only rows whose id contains this")
    parser.add_argument("--new", action="store_true", help="only rows that have no answer yet")
    arguments = parser.parse_args()
    tables = families()
    refused = sum(record(name, tables[name], arguments.only, arguments.new) for name in arguments.families or tables)
    sys.exit(1 if refused else 0)


if __name__ == "__main__":
    main()
