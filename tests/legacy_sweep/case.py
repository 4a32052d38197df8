"""One random network: made, run by Inference Engine and by irexec, and compared."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from irexec import compile_model, read_model
from irexec.errors import EngineError, IrexecError
from irexec.tools.engines.inference_engine import InferenceEngine
from tests.legacy_sweep import layers
from tests.legacy_sweep.network import Network
from tests.legacy_sweep.registry import GENERATORS, VERSIONS

__all__ = ["Outcome", "answers", "differences", "made", "own", "run", "types", "write"]

Outputs = list[dict[str, np.ndarray]]


@dataclass
class Outcome:
    """What a case has shown.

    Attributes:
        type, version, seed: the layer type, the version of the IR, and the seed: they make the network again.
        ran: the releases that ran it.
        refused: the releases that did not, with their reason.
        faults: differences and errors of irexec, as sentences.
    """

    type: str
    version: int
    seed: int
    ran: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)


def types() -> list[str]:
    """The layer types that have a generator."""
    return [name for name in GENERATORS if layers.__all__]


def made(type: str, version: int, seed: int) -> Network:
    """The network of a case."""
    rng = np.random.default_rng([zlib.crc32(type.encode()), version, seed])
    net = Network(version, rng, type=type)
    if rng.random() < 0.1:
        net.precision, net.rtol, net.atol = "FP16", 2e-3, 2e-3
    GENERATORS[type](net)
    return net


def versions(type: str) -> list[int]:
    """The versions that a layer type is written in."""
    return list(VERSIONS[type])


def write(net: Network, folder: Path) -> tuple[Path, Path]:
    """Write a network; the .xml and the .bin."""
    xml, binary = folder / "old.xml", folder / "old.bin"
    xml.write_text(net.xml())
    binary.write_bytes(bytes(net.blob))
    return xml, binary


def answers(
    net: Network, engines: Mapping[str, InferenceEngine], folder: Path
) -> tuple[dict[str, Outputs], dict[str, str]]:
    """The outputs of each release that is to run the network, and the reasons of those that refuse it."""
    xml, binary = write(net, folder)
    found: dict[str, Outputs] = {}
    refused: dict[str, str] = {}
    for release, engine in engines.items():
        if net.only and release not in net.only:
            continue
        try:
            found[release] = engine.run(xml, binary, net.feeds, timeout=60)
        except EngineError as error:
            refused[release] = str(error)
    return found, refused


def own(net: Network, folder: Path) -> Outputs:
    """The outputs of irexec."""
    xml, _ = write(net, folder)
    compiled = compile_model(read_model(xml))
    return [{str(name): array for name, array in compiled(feed).items()} for feed in net.feeds]


def differences(net: Network, expected: Outputs, found: Outputs) -> list[str]:
    """Each output of each run that differs, as a sentence."""
    said = []
    for call, (right, given) in list(enumerate(zip(expected, found, strict=True)))[net.first_run :]:
        if right.keys() != given.keys():
            return [f"outputs {sorted(given)}, expected {sorted(right)}"]
        for name in right:
            text = difference(right[name], given[name], net.rtol, net.atol)
            if text:
                said.append(f"output {name!r} of run {call}: {text}")
    return said


def difference(right: np.ndarray, given: np.ndarray, rtol: float, atol: float) -> str:
    """How an output differs, "" if it does not."""
    if right.shape != given.shape:
        return f"shape {given.shape}, expected {right.shape}"
    a, b = right.astype(np.float64), given.astype(np.float64)
    finite = np.abs(a[np.isfinite(a)])
    scale = float(finite.max()) if finite.size else 1.0
    close = np.isclose(b, a, rtol=rtol, atol=atol * max(scale, 1.0), equal_nan=True)
    if close.all():
        return ""
    worst = np.argwhere(~close)[0]
    at = tuple(int(i) for i in worst)
    return f"{int((~close).sum())} of {a.size} elements differ, at {at} {b[at]:.6g}, expected {a[at]:.6g}"


def run(type: str, version: int, seed: int, engines: Mapping[str, InferenceEngine], folder: Path) -> Outcome:
    """Make a network, run it everywhere, and compare."""
    net, outcome = made(type, version, seed), Outcome(type, version, seed)
    right, outcome.refused = answers(net, engines, folder)
    outcome.ran = list(right)
    if not right:
        return outcome
    try:
        found = own(net, folder)
    except IrexecError as error:
        outcome.faults.append(f"{error.__class__.__name__}: {error}")
        return outcome
    for release, expected in right.items():
        outcome.faults += [f"{release}: {text}" for text in differences(net, expected, found)]
    return outcome
