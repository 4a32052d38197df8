"""Lines of tags, which libxml2 counts up to 65,535 only."""

from __future__ import annotations

import pytest

from irexec import io
from irexec.io.xml import tag_lines

ROWS = {
    "one line": (b"<a><b/></a>", [1, 1]),
    "each on its own": (b"<a>\n<b/>\n\n<c>\n</c></a>", [1, 2, 4]),
    "declaration": (b'<?xml version="1.0"?>\n<a>\n<b/></a>', [2, 3]),
    "mark and white space": (b"\xef\xbb\xbf\n\n<a/>", [3]),
    "comment": (b"<a>\n<!-- <b>\n</b> --><c/></a>", [1, 3]),
    "instruction": (b"<a>\n<?x <b>\n?><c/></a>", [1, 3]),
    "CDATA": (b"<a>\n<![CDATA[<b>\n<c/>]]><d/></a>", [1, 3]),
    "lines in attributes": (b'<a\nx="1\n2">\n<b/></a>', [1, 4]),
    "carriage returns": (b"<a>\r\n<b/>\r\n<c/></a>", [1, 2, 3]),
    "ends in a tag": (b"<a>\n<", [1]),
}


@pytest.mark.parametrize(("data", "lines"), ROWS.values(), ids=ROWS)
def test_lines(data: bytes, lines: list[int]) -> None:
    assert list(tag_lines(data)) == lines


@pytest.mark.parametrize("comment", ["", "<!-- < -->"], ids=["tags only", "comment"])
def test_lines_are_exact_in_a_long_file(comment: str) -> None:
    """Tags at many offsets from the ends of the blocks of 1 MiB in which a file is read."""
    layer = '<layer id="{0}" name="n{0}" type="Frobnicate" version="opset1"/>'
    count = 40_000
    layers = "".join(layer.format(number) + "\n" * (1 + number % 5) for number in range(count))
    model = io.read_text(f'<net name="n" version="11">{comment}<layers>\n{layers}</layers><edges/></net>')
    line = 2
    for number, node in enumerate(model.nodes):
        assert node.line == line
        line += 1 + number % 5
    assert len(model.nodes) == count
    assert line > 65_535
