"""The reference of finding codes: a page for each row of the table in irexec.analysis.codes."""

from __future__ import annotations

from irexec.analysis.codes import CODES
from irexec.ir.codes import Code, by_number
from irexec_reference.markdown import fence, prose, table

_GROUPS = {
    "IR0": "Reading the file",
    "IR1": "Layers and attributes",
    "IR2": "Ports",
    "IR3": "The graph",
    "IR4": "Weights",
    "IR5": "Bodies and variables",
    "IR6": "Files of version 2 to 7",
    "IR90": "What a release of OpenVINO does not read",
    "IR9": "Where implementations differ",
    "ON0": "ONNX models: the graph",
    "ON1": "ONNX models: nodes that cannot be converted",
    "ON2": "ONNX models: declared types and shapes",
}


def pages() -> dict[str, str]:
    """Every page, by its name below the folder of generated pages."""
    return {"codes/index.md": _index(), **{f"codes/{code}.md": page(row) for code, row in CODES.items()}}


def page(row: Code) -> str:
    """The page of one code."""
    return "\n".join(
        [
            f"# {row.code}: {row.name}\n",
            f"**{row.severity.capitalize()}.** {_sentence(row.meaning)}\n",
            "## Example\n",
            fence(row.example, "text" if row.code.startswith("ON") else "xml"),
            "## How to repair it\n",
            f"{prose(row.repair)}\n",
            f"The same in the terminal: `irexec explain {row.code}`. [All codes](index.md)\n",
        ]
    )


def _sentence(meaning: str) -> str:
    return prose(meaning[:1].upper() + meaning[1:]) + "."


def _group(code: str) -> str:
    # Four digits continue IR9xx.
    letters, number = by_number(code)
    return "IR9" if letters == "IR" and number > 999 else next(filter(code.startswith, _GROUPS))


def _index() -> str:
    parts = [
        "# Finding codes\n",
        "Every finding of `irexec validate` has a code. Codes are stable: a code never gets another meaning. "
        "Errors mean that the model cannot be run or its results cannot be trusted; warnings are unusual, but the "
        "model can be run.\n",
    ]
    for prefix, title in _GROUPS.items():
        rows = [row for row in CODES.values() if _group(row.code) == prefix]
        parts += [
            f"## {title}\n",
            table(
                ("Code", "Severity", "Meaning"), [(_link(row), row.severity, _sentence(row.meaning)) for row in rows]
            ),
        ]
    return "\n".join(parts)


def _link(row: Code) -> str:
    return f"[{row.code}]({row.code}.md)"
