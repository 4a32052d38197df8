"""The translator of the ONNX operator SoftTopK of my.domain."""

from typing import Any

import irexec
from irexec.plugins import translates


@translates("my.domain", "SoftTopK")
def translate_soft_top_k(ctx: Any, data: irexec.Value, *, k: int = 1) -> Any:
    """One layer; the attribute has the same name."""
    return ctx.emit("SoftTopK", data, k=k)
