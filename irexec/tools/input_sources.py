"""Inputs for a model from files, pictures and random numbers, as ``irexec infer -i`` takes them."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from irexec.analysis.evaluate import rounded
from irexec.analysis.model import Port, expected, find_port
from irexec.dtypes.elements import Element
from irexec.errors import InputError, ModelError
from irexec.ir.dims import PartialShape, shape_text
from irexec.tools.images import PICTURES, Picture, read_picture

_NPY, _ZIP = b"\x93NUMPY", (b"PK\x03\x04", b"PK\x05\x06")


@dataclass(frozen=True)
class Feed:
    """One ``-i``: what it names, or None, and where the numbers come from (a path, or "random")."""

    name: str | None
    source: str

    @property
    def is_picture(self) -> bool:
        """Whether the source is called as pictures are."""
        return self.source.lower().endswith(PICTURES)


def parse_feed(text: str) -> Feed:
    """``name=source`` or ``source``. A name may hold ``=``: the source is what follows the last one."""
    name, equals, source = text.rpartition("=")
    if not source:
        raise InputError(f"-i {text!r} names no file")
    return Feed(name or None, source) if equals else Feed(None, text)


def arrays(feeds: Sequence[Feed], ports: Sequence[Port], *, seed: int = 0, picture: Picture | None = None) -> dict[str, np.ndarray]:
    """One array per input named by the feeds, by the port's name.

    A source without a name feeds the first input that has nothing yet; a .npz feeds by its own
    names; "random" alone feeds every input that has nothing.

    Raises:
        InputError: a name or shape does not fit the model.
        ModelError: a file cannot be read.
    """
    found: dict[str, np.ndarray] = {}
    for feed in sorted(feeds, key=lambda f: (f.source == "random" and f.name is None, f.name is None and not f.source.endswith(".npz"))):
        for name, array in _read(feed, ports, found, seed, picture or Picture()).items():
            if name in found:
                raise InputError(f"input {name!r} is given twice, the second time by {feed.source!r}")
            found[name] = array
    return found


def _read(feed: Feed, ports: Sequence[Port], found: Mapping[str, Any], seed: int, picture: Picture) -> dict[str, np.ndarray]:
    if feed.source == "random":
        targets = [find_port(ports, feed.name)] if feed.name else [port for port in ports if port.name not in found]
        _check_static(targets)
        return {port.name: random_array(port, seed + ports.index(port)) for port in targets}
    if feed.source.lower().endswith(".npz"):
        members = load(feed.source)
        if feed.name is not None:
            return {find_port(ports, feed.name).name: _only(members, feed)}
        try:
            return {find_port(ports, key).name: array for key, array in members.items()}
        except InputError as error:
            raise InputError(f"{feed.source}: {error}") from None
    port = find_port(ports, feed.name) if feed.name else _next_free(ports, found, feed)
    if feed.is_picture:
        return {port.name: read_picture(feed.source, port, picture)}
    return {port.name: _only(load(feed.source), feed)}


def _next_free(ports: Sequence[Port], found: Mapping[str, Any], feed: Feed) -> Port:
    for port in ports:
        if port.name not in found:
            return port
    raise InputError(f"there is no input left for {feed.source!r}: the model has {expected(ports)}")


def _only(members: Mapping[str, np.ndarray], feed: Feed) -> np.ndarray:
    if feed.name is not None and feed.name in members:
        return members[feed.name]
    if len(members) != 1:
        raise InputError(f"{feed.source!r} holds {len(members)} arrays ({', '.join(members)}), one is expected for {feed.name!r}")
    return next(iter(members.values()))


def load(path: str | Path) -> dict[str, np.ndarray]:
    """The arrays of a .npz by name, or of a .npy under the name "".

    Raises:
        ModelError: the file is not there, or is neither (pickled objects are refused).
    """
    try:
        with open(path, "rb") as file:
            start = file.read(len(_NPY))
        if not start.startswith((_NPY, *_ZIP)):
            raise ModelError(f"{path}: not a readable .npy or .npz: it starts with {start!r}")
        read = np.load(path, allow_pickle=False)
        if isinstance(read, np.ndarray):
            return {"": _native(read)}
        with read:
            return {name: _native(read[name]) for name in read.files}
    except FileNotFoundError:
        raise ModelError(f"{path}: there is no such file") from None
    except OSError as error:
        raise ModelError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (ValueError, EOFError, KeyError, zipfile.BadZipFile) as error:
        raise ModelError(f"{path}: not a readable .npy or .npz: {error}") from None


def _native(array: np.ndarray) -> np.ndarray:
    """The same numbers in this machine's order of bytes."""
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def random_array(port: Port, seed: int) -> np.ndarray:
    """Random numbers that an input takes: floats in [0, 1), integers small, the same for the same seed.

    Raises:
        InputError: its shape or type is not known.
    """
    _check_static([port])
    if port.element is None:
        raise InputError(f"the element type of input {port.name!r} is not known")
    return _random(port.element, static(port.shape) or (), np.random.default_rng(seed))


def _check_static(ports: Sequence[Port]) -> None:
    """All inputs of unknown sizes in one sentence."""
    open_ports = [port for port in ports if static(port.shape) is None]
    if open_ports:
        have = ", ".join(f"input {port.name!r} has shape {shape_text(port.shape)}" for port in open_ports)
        raise InputError(f"{have}: say which with {' '.join(f'--shape {port.name}=...' for port in open_ports)}")


def static(shape: PartialShape) -> tuple[int, ...] | None:
    """The sizes if every one is known."""
    if shape is None:
        return None
    sizes = tuple(size for size in shape if isinstance(size, int))
    return sizes if len(sizes) == len(shape) else None


def _random(element: Element, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    if element.kind == "string":
        return np.full(shape, "text", object)
    if element.kind == "boolean":
        return rng.integers(0, 2, shape).astype(np.bool_)
    if element.is_integer:
        return rng.integers(0, min(10, 1 << (element.bits - 1)), shape).astype(element.carrier)
    return rounded(rng.random(shape, np.float32).astype(element.carrier), element)
