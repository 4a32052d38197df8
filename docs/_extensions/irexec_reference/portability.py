"""The tables of docs/reference/portability.md: differences between implementations, and what each release reads."""

from __future__ import annotations

from collections import defaultdict
from itertools import groupby

from irexec.analysis.portability import DIFFERENCES, Difference
from irexec.analysis.portability.releases import ELEMENTS, OPERATIONS, OPSETS, Release
from irexec_reference.markdown import code, prose, table


def pages() -> dict[str, str]:
    """Every page, by its name below the folder of generated pages."""
    return {"portability/differences.md": differences(), "portability/releases.md": releases()}


def differences() -> str:
    """A table for each effect."""
    parts = [
        "# Differences between implementations\n",
        "Where OpenVINO's own implementations differ from each other or from the specification, with the code of the "
        "finding of `irexec validate --portability`. *Releases* are those from 2023.0 on that do so, as far as they "
        "were asked. "
        "[Portability](../../reference/portability.md) says more.\n",
    ]
    for effect, title in _TITLES.items():
        rows = [_row(row) for row in DIFFERENCES.values() if row.effect == effect]
        parts += [f"## {title}\n", table(("Code", "Operations", "Of OpenVINO", "What it does", "Releases"), rows)]
    return "\n".join(parts)


_TITLES = {
    "values": "Other values",
    "undefined values": "Values that depend on chance",
    "fails": "Models that are not read, compiled or run",
    "shape": "Other shapes",
}


def _row(row: Difference) -> tuple[str, ...]:
    types = ", ".join(f"[{type}](../operations/{type}.md)" for type in row.types) or "any"
    does = prose(row.does[:1].upper() + row.does[1:]) + "."
    return f"[{row.code}](../codes/{row.code}.md)", types, row.who, does, _range(row)


def _range(row: Difference) -> str:
    begin = "" if row.since is None else f"since {row.since}"
    end = "" if row.until is None else f"until {row.until}"
    return " ".join(filter(None, (begin, end))) or "all"


def releases() -> str:
    """The operations and element types that each release introduced."""
    news: dict[Release, list[str]] = defaultdict(list)
    for opset, release in OPSETS.items():
        news[release].append(f"opset{opset}")
    for release, group in groupby(OPERATIONS.items(), key=lambda item: item[1]):
        news[release].append(", ".join(code(f"{type}-{since}") for (type, since), _ in group))
    for release, members in groupby(ELEMENTS.items(), key=lambda item: item[1]):
        news[release].append("the element types " + ", ".join(code(name) for name, _ in members))
    news[Release(2022, 1)].append("version 11 of IR")
    about = "Additions of each release of OpenVINO to IR. See also [Portability](../../reference/portability.md).\n"
    return f"# Releases\n\n{about}\n" + table(
        ("Release", "Reads first"), [(str(release), "; ".join(news[release])) for release in sorted(news)]
    )
