"""Where the files are that tests read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]
SAMPLES = ROOT / "samples"
DIGITS = SAMPLES / "digits"
DATA = ROOT / "tests" / "data"
IRS = DATA / "openvino"
"""Small models that OpenVINO wrote."""
NETWORKS = DATA / "networks"
"""Whole networks, zipped, with recorded inputs and outputs."""


# Trees of small text files.


def write_tree(root: Path, files: Mapping[str, str]) -> Path:
    """Write a file for each path below ``root``, with a line break after its text; gives ``root``."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
    return root
