"""The table of the export to ONNX."""

from __future__ import annotations

from collections import Counter

from converters.ir_to_onnx.opsets import NEWEST_OPSET, OLDEST_OPSET
from converters.ir_to_onnx.registry import onnx_table
from irexec_reference.markdown import prose, table


def pages() -> dict[str, str]:
    """Every page, by its name below the folder of generated pages."""
    return {"onnx/operations.md": page()}


def page() -> str:
    """A row for each version of each operation."""
    lines = onnx_table()
    counts = Counter(line.onnx for line in lines)
    rows = [(f"[{x.type}](../operations/{x.type}.md)", x.version, x.onnx, prose(x.how)) for x in lines]
    return "\n".join([
        "# Operations of IR in ONNX\n",
        f"`irexec convert` writes operations for opset {NEWEST_OPSET} by default; older ones, from {OLDEST_OPSET} on, "
        f"compose what they lack. {counts['exact']} operations are exact (one node), {counts['composed']} composed "
        f"of several nodes, {counts['not expressible']} not expressible. An exact operation may need more nodes for "
        "element types and attributes that ONNX's operator lacks. "
        "[From IR to ONNX](../../commands/convert.md#from-ir-to-onnx) says how to use it.\n",
        table(("Operation", "Version", "In ONNX", "How"), rows),
    ])  # fmt: skip
