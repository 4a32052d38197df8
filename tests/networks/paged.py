"""The Llama of tests.networks with its cache in blocks, as OpenVINO transforms it: python -m tests.networks.paged"""

from __future__ import annotations

import tempfile
import zipfile
from pathlib import Path

import openvino as ov
from openvino._offline_transformations import paged_attention_transformation

from tests.support.paths import DATA, NETWORKS

TARGET = DATA / "llama_paged.zip"
NAMES = ("input_ids", "attention_mask", "position_ids")
"""The names of inputs that the transformation looks for."""


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        with zipfile.ZipFile(NETWORKS / "llama_sdpa.zip") as archive:
            archive.extractall(folder)
        model = ov.Core().read_model(Path(folder) / "llama_sdpa.xml")
        for given, name in zip(model.inputs, NAMES, strict=False):
            given.set_names({name})
            given.get_node().set_friendly_name(name)
        model.outputs[0].set_names({"logits"})
        paged_attention_transformation(model)
        ov.save_model(model, Path(folder) / "llama_paged.xml", compress_to_fp16=False)
        with zipfile.ZipFile(TARGET, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
            for suffix in (".xml", ".bin"):
                archive.write(Path(folder) / f"llama_paged{suffix}", f"llama_paged{suffix}")


if __name__ == "__main__":
    main()
