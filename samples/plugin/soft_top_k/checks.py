"""The check: a SoftTopK that keeps one value costs more than the comparison that it is."""

from collections.abc import Iterator

import irexec
from irexec.plugins import finding_check, finding_code

ONE_VALUE = finding_code(
    "my.ops:101",
    "warning",
    "softmax of one value",
    meaning="a SoftTopK keeps one value of each row, of which the softmax is 1",
    example='<layer id="1" name="top" type="SoftTopK" version="my.ops">\n  <data k="1"/>\n</layer>',
    repair="Keep more values, or compare the data with its maximum.",
)


@finding_check
def one_value(model: irexec.Graph, inference: irexec.Inference) -> Iterator[irexec.Finding]:
    """SoftTopK layers with k = 1."""
    for node in model.walk():
        if node.type == "SoftTopK" and node.version == "my.ops" and node.attributes.get("k", "1") == "1":
            yield node.finding(ONE_VALUE, "k is 1, so that each result is 0 or 1")
