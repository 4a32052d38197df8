"""The program that a release runs."""

from __future__ import annotations

from pathlib import Path

import irexec
from irexec.opset import parameter, relu, split
from irexec.tools.engines.releases.program import layer_outputs, precision_of


def test_releases_before_2022_name_outputs_by_layers_and_ports(tmp_path: Path) -> None:
    # The names that IECore of 2021.4.2 gives for this file: network.outputs.
    x = parameter((4, 2), "f32", "x")
    first, second = split(x, 0, num_splits=2, name="halves")
    path = tmp_path / "m.xml"
    irexec.save_model(irexec.Model([second, relu(first, name="positive")], [x]), path)
    assert layer_outputs(str(path)) == ["halves.1", "positive"]


def test_a_precision_that_the_release_cannot_return() -> None:
    """2022.1 takes the hint, and fails to return it."""

    class Compiled:
        def get_property(self, name: str) -> object:
            raise TypeError(f"Unable to convert {name}")

    assert precision_of(Compiled(), {"INFERENCE_PRECISION_HINT": "f32"}) == "f32"
