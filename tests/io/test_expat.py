"""expat beside lxml: the same elements, lines and refusals of the fuzzer's files; the words of a syntax error differ."""

from __future__ import annotations

import random
import re

import pytest

from irexec.errors import ModelError
from irexec.io import xml
from tests.fuzz.targets.xml import generate

_NOT_WELL_FORMED = re.compile("not well-formed XML|contains no XML element")


def _parsed(data: bytes, monkeypatch: pytest.MonkeyPatch, with_lxml: bool) -> object:
    """Every element of a file, or why it is refused."""
    with monkeypatch.context() as patched:
        if not with_lxml:
            patched.setattr(xml, "etree", None)
        try:
            root = xml.parse(data, "m.xml")
        except ModelError as error:
            return "not well-formed" if _NOT_WELL_FORMED.search(str(error)) else str(error)
    return [(x.tag, dict(x.attributes), x.text, x.tail, x.line) for x in root.walk()]


def test_expat_reads_the_fuzzers_files_as_lxml_does(monkeypatch: pytest.MonkeyPatch) -> None:
    rng, kinds = random.Random(5), set()
    for number in range(150):
        data = generate(rng, number).files["m.xml"]
        read = _parsed(data, monkeypatch, True)
        assert _parsed(data, monkeypatch, False) == read, data
        kinds.add(type(read))
    assert kinds == {str, list}


@pytest.mark.parametrize(
    "data",
    [
        b"", b" ", b"<a", b"<a>", b"<a></b>", b'<a b="1" b="2"/>', b"<a/><b/>", b"<a>&lt;&#65;\r\n</a>", b"<a>&x;</a>",
        b"<a>\xff</a>", b"<a><![CDATA[ x<y ]]></a>", b"<!DOCTYPE a><a/>", b"<a>t<b/>u</a>", b'<a b="x\ny"/>', b"<a>\x01</a>",
        b"<?xml version='1.0' encoding='latin-1'?><a b='\xe9'/>",
    ],
)  # fmt: skip
def test_small_files(data: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _parsed(data, monkeypatch, False) == _parsed(data, monkeypatch, True)


@pytest.mark.parametrize("with_lxml", [True, False])
def test_a_prefix_stays_in_the_name(with_lxml: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """lxml drops a prefix that nothing declares; the reader of OpenVINO (pugixml) keeps every name as it is written."""
    read = _parsed(b'<a:net x:y="1" xmlns:z="u"><z:b/></a:net>', monkeypatch, with_lxml)
    assert isinstance(read, list)
    assert [(tag, attributes) for tag, attributes, *_ in read] == [
        ("a:net", {"x:y": "1", "xmlns:z": "u"}),
        ("z:b", {}),
    ]
    assert _parsed(b"<a:b/><c/>", monkeypatch, with_lxml) == "not well-formed"
