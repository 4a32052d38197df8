"""Record what OpenVINO makes of every element type: python -m tests.oracle.elements

What is recorded, in tests/data/elements.npz, by name of the type:

    decoded   the float32 (float64, integer) that each code stands for; differences, for the types of 16 bits
    given     numbers on, between and just beside all codes, and beyond them
    encoded   the codes that these become
    whole     integers on both sides of the range, and `packed`, the bytes in which a saved model has them
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import openvino as ov
from openvino.passes import ConstantFolding, Manager

from irexec.dtypes.elements import F32, I32, element
from tests.oracle.openvino_runner import model_of
from tests.support import goldens
from tests.support.one_operation import Text
from tests.support.paths import DATA

FILE = DATA / "elements.npz"
BYTES = ("f8e4m3", "f8e5m2", "f8e8m0")
NIBBLES = ("f4e2m1", "nf4")
HALVES = ("f16", "bf16")
INTEGERS = ("u1", "u2", "u3", "u4", "u6", "i4")
TEXTS = ["", "irexec", "größer als 3", "", "数字", "a,b\\c\n", "\U0001f9ee"]

# What lies at most one part in 4096 below these becomes twice what it should in f8e5m2: see irexec.dtypes.elements.
DOUBLED = (2.0**-17, 2.0**-16, 2.0**-15)


def folded(source: str, raw: np.ndarray, count: int, to: str) -> np.ndarray:
    """The bytes that a saved model has for a folded Convert of packed bytes."""
    text = Text([], [], bytearray(raw.tobytes()))
    location = {"offset": "0", "size": str(raw.size)}
    constant = text.layer(
        "Const", "opset1", {"element_type": source, "shape": str(count)} | location, [], [element(source)]
    )
    text.layer("Result", "opset1", {}, [text.convert((constant, 0), element(to))], [])
    model = model_of(text)
    manager = Manager()
    manager.register_pass(ConstantFolding())
    manager.run_passes(model)
    if model.get_results()[0].input_value(0).get_node().get_type_name() != "Constant":
        raise RuntimeError(f"{source} to {to} is not folded")
    return saved(model)


def saved(model: ov.Model) -> np.ndarray:
    with tempfile.TemporaryDirectory() as folder:
        xml, weights = Path(folder) / "m.xml", Path(folder) / "m.bin"
        ov.serialize(model, xml, weights)
        return np.fromfile(weights, np.uint8)


def codes_by_plugin(values: np.ndarray, to: str) -> np.ndarray:
    """Packed bytes from the CPU plugin, for what is not folded."""
    text = Text([], [], bytearray())
    text.layer("Result", "opset1", {}, [text.convert((text.parameter(F32, str(values.size)), 0), element(to))], [])
    request = ov.Core().compile_model(model_of(text), "CPU", {"INFERENCE_PRECISION_HINT": "f32"}).create_infer_request()
    request.infer([values])
    return request.get_output_tensor(0).data.view(np.uint8).reshape(-1).copy()


def around(values: np.ndarray) -> np.ndarray:
    """float32 numbers on, between and just beside the values, and beyond them."""
    kept = np.unique(values[np.isfinite(values)]).astype(np.float64)
    between = (kept[1:] + kept[:-1]) / 2
    beyond = [kept[-1] * x for x in (1 + 2.0**-9, 1.03125, 1.0625, 1.125, 1.25, 1.5, 2.0)]
    marks = np.concatenate([kept, between, beyond, np.negative(beyond)]).clip(-3e38, 3e38).astype(np.float32)
    marks = np.concatenate([marks, np.nextafter(marks, np.float32(3e38)), np.nextafter(marks, np.float32(-3e38))])
    marks = np.concatenate([marks, marks * np.float32(1 + 2.0**-12), marks * np.float32(1 - 2.0**-12)])
    odd = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 3.4e38, -3.4e38, 1e-45, -1e-45], np.float32)
    return np.concatenate([np.unique(marks), odd])


def record_small(name: str, arrays: dict[str, np.ndarray]) -> None:
    count = 256 if name in BYTES else 16
    raw = np.arange(256, dtype=np.uint8) if name in BYTES else np.arange(0x10, 0x100, 0x22, dtype=np.uint8)
    decoded = folded(name, raw, count, "f32").view(np.float32)
    given = around(decoded)
    if name == "f8e5m2":
        for top in DOUBLED:
            given = given[~((np.abs(given) >= top * (1 - 2.0**-12)) & (np.abs(given) < top))]
    packed = codes_by_plugin(given, name) if name == "nf4" else folded("f32", given.view(np.uint8), given.size, name)
    if name in NIBBLES:
        packed = np.stack([packed & 15, packed >> 4], axis=1).reshape(-1)[: given.size]
    arrays |= {f"decoded {name}": decoded, f"given {name}": given, f"encoded {name}": packed}


def record_half(name: str, arrays: dict[str, np.ndarray]) -> None:
    """All 65,536 codes; and what is halfway between each and the next, where OpenVINO's bf16 is to nearest even too."""
    codes = np.arange(1 << 16).astype(np.uint16)
    decoded = folded(name, codes.view(np.uint8), codes.size, "f32")
    with np.errstate(invalid="ignore"):
        values = decoded.view(np.float32).astype(np.float64)
        ties = ((values[:-1] + values[1:]) / 2).astype(np.float32)
    encoded = folded("f32", ties.view(np.uint8), ties.size, name).view(np.uint16)
    arrays[f"decoded {name}"] = np.diff(decoded.view(np.uint32), prepend=np.uint32(0))
    arrays[f"encoded {name}"] = encoded - codes[:-1]


def record_integers(name: str, arrays: dict[str, np.ndarray]) -> None:
    """As many as fill whole bytes: what OpenVINO leaves in the rest of a last one is chance."""
    whole = np.random.default_rng(len(name)).integers(-300, 300, 48).astype(np.int32)
    arrays |= {f"whole {name}": whole, f"packed {name}": folded(I32.name, whole.view(np.uint8), whole.size, name)}


def main() -> None:
    arrays: dict[str, np.ndarray] = {}
    for name in (*BYTES, *NIBBLES):
        record_small(name, arrays)
    for name in HALVES:
        record_half(name, arrays)
    for name in INTEGERS:
        record_integers(name, arrays)
    # Without the Tensor around it the wheel reads memory that is not its own.
    text = ov.op.Constant(ov.Tensor(np.array(TEXTS)))
    arrays |= {"whole string": np.array(TEXTS), "packed string": saved(ov.Model([ov.opset1.result(text)], []))}
    goldens.write(FILE, arrays)
    print(f"{len(arrays)} arrays, {FILE.stat().st_size} bytes")


if __name__ == "__main__":
    main()
