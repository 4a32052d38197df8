"""Every attribute that OpenVINO reads and writes is known, or ignored on purpose: what it does not read changes nothing."""

from __future__ import annotations

import pytest

import irexec.ops  # noqa: F401 - makes the operations known to the registry
from irexec.schema.registry import opset_versions, resolve

_WITH_BODIES_OR_STATE = ("If", "Loop", "TensorIterator", "ReadValue", "Assign", "Constant")
VERSIONS = [(type, since) for type, since in opset_versions() if type not in _WITH_BODIES_OR_STATE]


def test_attributes_that_openvino_reads() -> None:
    factory = pytest.importorskip("openvino.utils.node_factory").NodeFactory
    unknown = {}
    for type, since in VERSIONS:
        definition = resolve(type, f"opset{since}")
        read = set(factory(f"opset{since}").create(type).get_attributes())
        if others := read - definition.by_name.keys() - set(definition.ignores):
            unknown[type, since] = others
    assert unknown == {}
