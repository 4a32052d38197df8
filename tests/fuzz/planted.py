"""Faults that tests of the fuzzer put into the project: each function makes ``validate`` fail for models with a layer of type Elu."""

from __future__ import annotations

import itertools
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from irexec.analysis import validate

TYPE = "Elu"


def _plant(fault: Callable[[], object], start: str = TYPE) -> None:
    sound = validate.is_execution_graph

    def planted(model: Any) -> bool:
        if any(node.type.startswith(start) for node in model.nodes):
            fault()
        return sound(model)

    validate.is_execution_graph = planted


def exception() -> None:
    _plant(lambda: 1 // 0)


def frequent_exception() -> None:
    """Of every tenth operation or so."""
    _plant(lambda: [].pop(), "S")


def warning() -> None:
    _plant(lambda: warnings.warn("planted", RuntimeWarning, stacklevel=2))


def loop() -> None:
    def endless() -> None:
        while True:
            pass

    _plant(endless)


def loop_in_c() -> None:
    """A loop that never comes back to the interpreter, where no signal handler runs."""
    _plant(lambda: sum(itertools.repeat(0)))


def memory() -> None:
    _plant(lambda: bytearray(1 << 40))


def crash() -> None:
    _plant(os.abort)


def file() -> None:
    _plant(
        lambda: (
            Path(__file__).parents[3].joinpath("planted").exists()
            or open(Path(__file__).parents[2] / "README.md").close()
        )
    )


def output() -> None:
    _plant(lambda: print("planted"))
