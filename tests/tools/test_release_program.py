"""The program that a release runs."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest

import irexec
from irexec.opset import parameter, relu, split
from irexec.tools.engines.releases import program
from irexec.tools.engines.releases.program import OpenVINO, layer_outputs, precision_of


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


class _Request:
    """A request whose infer does not read scalars, as that of 2023.3 with NumPy 2, and which gives its inputs."""

    def __init__(self) -> None:
        self.tensors = [SimpleNamespace(data=np.zeros(shape, np.float32), shape=shape) for shape in ((), (2,))]

    def infer(self, given: dict[int, np.ndarray]) -> None:
        for index, array in given.items():
            self.tensors[index].data[...] = array if array.ndim else np.nan

    def get_input_tensor(self, index: int) -> SimpleNamespace:
        return self.tensors[index]

    get_output_tensor = get_input_tensor


def test_scalars_are_written_into_the_tensors_of_a_request() -> None:
    run = object.__new__(OpenVINO)
    run.index, run.request, run.count = {"scalar": 0, "pair": 1}, _Request(), 2
    for number in (3.0, -1.0):
        scalar, pair = run({"scalar": np.array(number, np.float32), "pair": np.array([1, number], np.float32)})
        assert scalar == number
        assert pair.tolist() == [1, number]


class _Core:
    """A Core whose plugin looks for LP_TRANSFORMS_MODE among its own properties alone, as that of 2022.3."""

    seen: ClassVar[list[tuple[dict[str, str], dict[str, str]]]] = []

    def __init__(self) -> None:
        self.properties: dict[str, str] = {}

    def get_versions(self, device: str) -> None:
        """Load the plugin."""

    def set_property(self, device: str, properties: dict[str, str]) -> None:
        if "LACKED" in properties:
            raise RuntimeError("no such property")
        self.properties.update(properties)

    def read_model(self, path: str) -> SimpleNamespace:
        return SimpleNamespace(inputs=[])

    def compile_model(self, model: object, device: str, properties: dict[str, str]) -> SimpleNamespace:
        self.seen.append((dict(self.properties), dict(properties)))
        return SimpleNamespace(create_infer_request=lambda: None, outputs=[], get_property=lambda name: [])


def test_a_release_is_told_twice_not_to_compute_in_8_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "openvino", lambda: (SimpleNamespace(Core=_Core), "2022.3"))
    preferred = {"LP_TRANSFORMS_MODE": "NO", "LACKED": "1"}
    OpenVINO({"model": "m.xml", "device": "CPU", "preferred": preferred, "options": {}, "threads": None})
    of_plugin, of_model = _Core.seen[-1]
    assert of_plugin == {"LP_TRANSFORMS_MODE": "NO"}
    assert of_model == {**of_plugin, "PERFORMANCE_HINT": "LATENCY"}
