"""Where the files are that tests read."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]
SAMPLES = ROOT / "samples"
DIGITS = SAMPLES / "digits"
DATA = ROOT / "tests" / "data"
IRS = DATA / "openvino"
"""Small models that OpenVINO wrote."""
NETWORKS = DATA / "networks"
"""Whole networks, zipped, with recorded inputs and outputs."""
