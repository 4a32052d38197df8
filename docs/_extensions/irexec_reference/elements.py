"""The table of element types."""

from __future__ import annotations

from irexec.dtypes.elements import ELEMENTS
from irexec_reference.markdown import code, table


def pages() -> dict[str, str]:
    """A table to be included, by its name below the folder of generated pages."""
    rows = [
        (
            code(e.name),
            code(e.precision),
            e.kind,
            str(e.bits) if e.bits else "varies",
            code("object") + " of str" if e.carrier.hasobject else code(e.carrier.name),
            "no" if e.native else "yes",
            "" if e.onnx is None else code(e.onnx.name),
        )
        for e in ELEMENTS
    ]
    headers = ("Element type", "Port precision", "Kind", "Bits", "NumPy type", "Rounded", "ONNX type")
    # Included by a page, and no page itself.
    return {"element_types.inc": table(headers, rows)}
