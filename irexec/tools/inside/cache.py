"""The transformed model in a file of OpenVINO's cache.

The file of a model that the CPU plugin has compiled holds, after a line of XML about the release, six numbers of 64
bits: offset and size of its notes, its constants and its model, the last of which is an IR. Offsets count from the
first of the numbers, in older releases from the beginning of the file. Without callbacks for encryption the model is
scrambled.
Source: openvinotoolkit/openvino, src/core/src/pass/serialize.cpp and stream_serialize.
"""

from __future__ import annotations

import importlib.util
import struct
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from irexec.errors import EngineError, ModelError, UnsupportedError
from irexec.messages import sentence
from irexec.tools.engines.releases.environments import clean_environment

PROGRAM = Path(__file__).with_name("program.py")
_PLACES = struct.Struct("<6Q")
_SEARCHED = 4096
"""Bytes from the beginning of the file in which the numbers are."""


class Transformed(NamedTuple):
    """The IR of a transformed model, as text, its constants, and the version of OpenVINO that made it."""

    xml: bytes
    constants: bytes
    version: str


def transformed(model: str, python: Sequence[str] = (sys.executable,), *, precision: str = "f32") -> Transformed:
    """Compile a model with OpenVINO's CPU plugin, and take the transformed model from its cache.

    Args:
        model: the path of an .xml or .onnx.
        python: the command of a Python that has OpenVINO.
        precision: INFERENCE_PRECISION_HINT.

    Raises:
        UnsupportedError: this Python has no OpenVINO.
        EngineError: OpenVINO refuses the model, or this release keeps no file.
        ModelError: the file is scrambled, or laid out as no known release does it.
    """
    if python[0] == sys.executable and importlib.util.find_spec("openvino") is None:
        raise UnsupportedError("inside needs the package openvino (pip install openvino), which is not installed")
    with tempfile.TemporaryDirectory(prefix="irexec-inside-") as folder:
        command = [*python, str(PROGRAM), str(Path(model).absolute()), folder, precision]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=clean_environment())
        files = [path for path in Path(folder).iterdir() if path.is_file()]
        if done.returncode or len(files) != 1:
            said = done.stderr.strip().splitlines() or [f"it kept {len(files)} files"]
            raise EngineError(f"OpenVINO did not compile {model} into its cache: {sentence(said[-1])}")
        return parts(files[0].read_bytes(), done.stdout.strip())


def parts(blob: bytes, version: str) -> Transformed:
    """The model and the constants of a cache file.

    Raises:
        ModelError: the model is scrambled, or the file is laid out as in no known release.
    """
    for at in range(min(len(blob) - _PLACES.size, _SEARCHED)):
        notes, notes_size, constants, constants_size, model, model_size = _PLACES.unpack_from(blob, at)
        for base in (at, 0):
            # Each part follows the one before, and the notes the numbers.
            if notes + base != at + _PLACES.size or not notes + notes_size <= constants <= model:
                continue
            if constants + constants_size > model or base + model + model_size > len(blob):
                continue
            text = blob[base + model : base + model + model_size]
            if not text.lstrip().startswith((b"<?xml", b"<net")):
                raise ModelError(f"OpenVINO {version} has scrambled the model in its cache")
            data = blob[base + constants : base + constants + constants_size]
            return Transformed(text.rstrip(b"\0"), data, version)
    raise ModelError(f"the cache of OpenVINO {version} is laid out as in no release that is known here")
