"""The codes of what OpenVINO does: IR90x of its releases, and one for each difference of irexec.ir.portability."""

from __future__ import annotations

from irexec.ir.code_table import add as _code
from irexec.ir.portability import DIFFERENCES

# Each row as a block: code, severity and name; meaning; example; repair.
# fmt: off
NOT_IN_RELEASE = _code(
    "IR901", "error", "operation newer than the release",
    "the release of OpenVINO does not have the operation, or not in this version (found with --for)",
    '<layer id="2" name="norm" type="GroupNormalization" version="opset12"/>',
    "Convert the model again for the release, write the layer in older operations, or use a newer release.",
)
OPSET_NOT_IN_RELEASE = _code(
    "IR902", "error", "opset newer than the release", "the release of OpenVINO does not have the opset of a layer (found with --for)",
    '<layer id="2" name="relu" type="ReLU" version="opset15"/>',
    "Write the opset in which this version of the operation first appeared (irexec ops ReLU); it means the same.",
)
ELEMENT_NOT_IN_RELEASE = _code(
    "IR903", "error", "type newer than the release",
    "the release of OpenVINO does not have an element type of the model (found with --for)",
    '<data element_type="f8e4m3" shape="8, 3" offset="0" size="24"/>',
    "Use another type, or a newer release.",
)
VERSION_NOT_IN_RELEASE = _code(
    "IR904", "error", "file version not in the release", "the release of OpenVINO does not read this version of IR (found with --for)",
    '<net name="m" version="11"/>',
    "Convert the model again with a converter of the release.",
)
# fmt: on

for _row in DIFFERENCES.values():
    _code(_row.code, "info", _row.name, f"{_row.does} (found with --portability)", _row.example, _row.repair)
