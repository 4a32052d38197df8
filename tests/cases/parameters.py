"""Rows of the ends of a graph; Parameter and Constant are also held by the tests of reading."""

from irexec.testing import case, facts_case, random

ROWS = [
    case("Result", 1, random("f32", 2, 3), gives=random("f32", 2, 3), id="f32"),
    facts_case("Result", 1, "f32[?,2..5]", gives="f32[?,2..5]", id="dynamic"),
    facts_case("Parameter", 1, element_type="f32", shape="?,2..5", gives="f32[?,2..5]", id="bounded"),
    facts_case("Parameter", 1, element_type="i64", shape="...", gives="i64[...]", id="rank unknown"),
    facts_case("Parameter", 1, element_type="boolean", shape="", gives="boolean[]", id="scalar"),
]
