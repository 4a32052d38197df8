"""Whole networks written as ONNX give what OpenVINO gave for the IR."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

import irexec
from tests.support.exported import run_onnx
from tests.support.networks import difference, feeds, unpacked
from tests.support.paths import NETWORKS

NAMES = sorted(path.stem for path in NETWORKS.glob("*.zip"))
TOLERANCE = 1e-4
"""Largest difference, relative to the largest number of the output."""

STATES = "ReadValue and Assign are not written"
SEQUENCES = "recurrent sequences and loops are not written"
DETECTION = "operations of detectors are not written"
REFUSED = {
    **dict.fromkeys(
        ("gpt2_half", "gpt2_sdpa", "llama_int4_asym", "llama_int8_sym", "llama_nf4", "llama_sdpa", "qwen3"), STATES
    ),
    **dict.fromkeys(("bilstm_tagger", "gru_tagger", "rnn_tagger", "scripted_loop"), SEQUENCES),
    **dict.fromkeys(("faster_rcnn", "ssd", "yolo"), DETECTION),
    "spectrogram": "STFT is not written",
}


@pytest.mark.parametrize("name", NAMES)
def test_network(name: str, tmp_path: Path) -> None:
    path = unpacked(name, tmp_path)
    model = irexec.read_model(path)
    try:
        proto = irexec.to_onnx(model)
    except irexec.ConversionError:
        assert name in REFUSED
        return
    onnx.checker.check_model(proto, full_check=True)
    answers = np.load(path.with_suffix(".npz"))
    for i, inputs in enumerate(feeds(path, model.inputs)):
        results, _ = run_onnx(proto, inputs)
        for j, result in enumerate(results):
            assert difference(result, answers[f"{i}.{j}"]) < TOLERANCE, f"run {i}, output {j}"
