"""Who wrote a file of version 2 to 7, and when."""

from __future__ import annotations

from converters.legacy_ir.syntax import OldModel

# When Model Optimizer wrote each version, for files that do not name the one that wrote them.
_TIMES = {
    2: "in 2017", 3: "in 2018", 4: "in 2018 (R3, R4)", 5: "in 2018 and 2019 (2018 R5, 2019 R1)", 6: "in 2019 (R2)",
    7: "in 2019 (R3) and, on request, in 2020",
}  # fmt: skip


def written_by(model: OldModel) -> str:
    """The version of the file, and the Model Optimizer that it names, or else when this version was written."""
    return f"IR version {model.version}, written by Model Optimizer {model.writer or _TIMES[model.version]}"
