"""Constants in other forms than their declared ones."""

from __future__ import annotations

import numpy as np

import irexec
from tests.converters.legacy_ir.files import OldFile


def test_i64_in_four_bytes() -> None:
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    file = OldFile(7)
    data = file.input("x", x.shape)
    blobs = {"custom": np.array([2, 0], np.int32)}
    indices = file.layer("Const", "indices", (), [(2,)], blobs=blobs, precision="I64", precisions=["I64"])
    file.layer("Gather", "y", [(data, 0, x.shape), (indices, 0, (2,))], [(2, 4)], {"axis": 0})
    found = irexec.infer(irexec.read_model(file.text, file.data), {"x": x})
    np.testing.assert_array_equal(found["y"], x[[2, 0]])
