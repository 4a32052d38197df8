"""Recurrent operators of ONNX with all their options; the results of ONNX Runtime are in tests/data/onnx/recurrent.npz.

``python -m tests.oracle.record_onnx`` records it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tests.support.paths import DATA

RECORDED = DATA / "onnx" / "recurrent.npz"
T, B, I, H = 4, 3, 2, 3
_GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
_SYMBOLS = {"x": {0: "T", 1: "B"}, "sequence_lens": {0: "B"}, "initial_h": {1: "B"}, "initial_c": {1: "B"}}
# The order of the operator's inputs after X, W and R; capital letters of the rows.
_OPTIONAL = {"B": "b", "L": "sequence_lens", "H": "initial_h", "C": "initial_c", "P": "p"}


class Row(NamedTuple):
    """One node.

    Attributes:
        operator: LSTM, GRU or RNN.
        given: the optional inputs that are given: B, L, H, C, P.
        attributes: of the node, without hidden_size.
        lengths: of the sequences.
        computed: the weights are inputs of the model, not constants.
        dynamic: time and batch are known at run time.
        opset: of the model.
        outputs: the first outputs; "_" for one without a name.
        openvino: the reason why OpenVINO cannot run it.
    """

    operator: str
    given: str = ""
    attributes: Mapping[str, Any] = {}
    lengths: tuple[int, ...] = (4, 2, 3)
    computed: bool = False
    dynamic: bool = False
    opset: int = 14
    outputs: str = "yhc"
    openvino: str = ""

    @property
    def layout(self) -> int:
        return int(self.attributes.get("layout", 0))

    def arrays(self) -> dict[str, np.ndarray]:
        """Every input, the same in every run."""
        rng = np.random.default_rng(7)
        rows, gates = 2 if self.attributes.get("direction") == "bidirectional" else 1, _GATES[self.operator]
        state = (B, rows, H) if self.layout else (rows, B, H)
        shapes = {
            "x": (B, T, I) if self.layout else (T, B, I), "w": (rows, gates * H, I), "r": (rows, gates * H, H), "b": (rows, 2 * gates * H),
            "initial_h": state, "initial_c": state, "p": (rows, 3 * H),
        }  # fmt: skip
        arrays = {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
        arrays["sequence_lens"] = np.array(self.lengths, np.int32)
        reference = ["x", "w", "r", *(_OPTIONAL[letter] for letter in self.given)]
        return {name: arrays[name] for name in arrays if name in reference}

    def model(self, layout_0: bool = False) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
        """The model and what to feed it; with ``layout_0`` the same network with time first, which ONNX Runtime can run."""
        arrays, attributes = self.arrays(), dict(self.attributes)
        if layout_0 and attributes.pop("layout", 0):
            arrays |= {name: arrays[name].swapaxes(0, 1) for name in ("x", "initial_h", "initial_c") if name in arrays}
        weights = () if self.computed else ("w", "r", "b", "p")
        names = ["x", "w", "r", *_OPTIONAL.values()]
        inputs = [name if name in arrays else "" for name in names]
        while not inputs[-1]:
            inputs.pop()
        outputs = ["" if letter == "_" else letter for letter in self.outputs[: 3 if self.operator == "LSTM" else 2]]
        node = helper.make_node(self.operator, inputs, outputs, name="node", **{"hidden_size": H} | attributes)
        inputs_ = {name: array for name, array in arrays.items() if name not in weights}
        infos = [self._info(name, array) for name, array in inputs_.items()]
        graph = helper.make_graph(
            [node], "g", infos, [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs if name],
            [numpy_helper.from_array(arrays[name], name) for name in weights if name in arrays],
        )  # fmt: skip
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=8), inputs_

    def _info(self, name: str, array: np.ndarray) -> onnx.ValueInfoProto:
        shape: list[int | str] = list(array.shape)
        for axis, symbol in _SYMBOLS.get(name, {}).items() if self.dynamic else ():
            shape[axis] = symbol
        return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), shape)


_DIRECTIONS = ("forward", "reverse", "bidirectional")
_ALL = {"LSTM": "BLHC", "GRU": "BLH", "RNN": "BLH"}
_THREE = {"LSTM": 3, "GRU": 2, "RNN": 1}
_DYNAMIC = "its CPU plugin ignores sequence lengths if sizes are dynamic"


def _rows() -> dict[str, Row]:
    rows: dict[str, Row] = {}
    for operator, given in _ALL.items():
        for direction in _DIRECTIONS:
            rows[f"{operator}, {direction}"] = Row(operator, "", {"direction": direction})
            rows[f"{operator}, {direction}, every input"] = Row(operator, given, {"direction": direction})
            rows[f"{operator}, {direction}, batches first"] = Row(
                operator, given, {"direction": direction, "layout": 1}
            )
        both = {"direction": "bidirectional"}
        count = _THREE[operator]
        softsign = {"activations": ["Softsign"] * count}
        rows |= {
            f"{operator}, computed weights": Row(operator, given, both, computed=True),
            f"{operator}, dynamic sizes": Row(operator, given, both, dynamic=True, openvino=_DYNAMIC),
            f"{operator}, a loop of dynamic sizes": Row(operator, given, softsign, dynamic=True),
            f"{operator}, a loop with computed weights": Row(
                operator, given, both | {"activations": ["Softsign"] * 2 * count}, computed=True
            ),
            f"{operator}, an empty sequence": Row(operator, given, both, lengths=(0, 4, 1)),
            f"{operator}, clip": Row(operator, "B", both | {"clip": 0.4}),
            f"{operator}, clip in a loop": Row(operator, "B", softsign | {"clip": 0.4}),
            f"{operator}, opset 7": Row(operator, given, {}, opset=7),
            f"{operator}, opset 22": Row(operator, given, {}, opset=22),
            f"{operator}, only the last state": Row(operator, "B", {}, outputs="_h"),
            f"{operator}, batches first in a loop": Row(operator, given, softsign | {"layout": 1}),
            f"{operator}, reverse in a loop": Row(operator, given, softsign | {"direction": "reverse"}),
            f"{operator}, reverse in a loop without lengths": Row(operator, "B", softsign | {"direction": "reverse"}),
        }
    for name, parameters in {
        "Affine": ([0.5], [0.25]), "Relu": ([], []), "LeakyRelu": ([0.2], []), "ThresholdedRelu": ([0.3], []), "Tanh": ([], []),
        "ScaledTanh": ([0.7], [1.5]), "Sigmoid": ([], []), "HardSigmoid": ([0.3], [0.4]), "Elu": ([0.6], []), "Softsign": ([], []),
        "Softplus": ([], []),
    }.items():  # fmt: skip
        attributes = {"activations": [name]}
        attributes |= {
            f"activation_{which}": values for which, values in zip(("alpha", "beta"), parameters, strict=True) if values
        }
        rows[f"RNN, {name}"] = Row("RNN", "BH", attributes)
        if name in ("LeakyRelu", "HardSigmoid", "Elu"):
            rows[f"RNN, {name} with default parameters"] = Row("RNN", "BH", {"activations": [name]})
    mixed = {
        "direction": "bidirectional",
        "activations": ["sigmoid", "TANH", "Relu", "LeakyRelu", "HardSigmoid", "Elu"],
    }
    rows |= {
        "RNN, each direction has its own activation": Row(
            "RNN", "BLH", {"direction": "bidirectional", "activations": ["Relu", "Tanh"]}
        ),
        # The second and third functions take the parameters; the first has none.
        "LSTM, parameters for some of its activations": Row(
            "LSTM", "BLHC", mixed | {"activation_alpha": [0.1, 0.3, 0.5], "activation_beta": [0.6]}
        ),
        "GRU, linear before reset": Row("GRU", "BLH", {"linear_before_reset": 1, "direction": "bidirectional"}),
        "GRU, linear before reset without a bias": Row("GRU", "H", {"linear_before_reset": 1}),
        "GRU, linear before reset, computed weights": Row("GRU", "BLH", {"linear_before_reset": 1}, computed=True),
        "GRU, linear before reset in a loop": Row(
            "GRU", "BLH", {"linear_before_reset": 1, "activations": ["Sigmoid", "Softsign"]}
        ),
        "LSTM, peepholes": Row("LSTM", "BHCP", {}),
        "LSTM, peepholes, lengths and both directions": Row("LSTM", "BLHCP", {"direction": "bidirectional"}),
        "LSTM, peepholes, clip and computed weights": Row(
            "LSTM", "BLHCP", {"direction": "reverse", "clip": 0.5}, computed=True
        ),
        "LSTM, no forget gate": Row("LSTM", "BLHC", {"input_forget": 1}),
        "LSTM, peepholes and no forget gate": Row("LSTM", "BHCP", {"input_forget": 1, "direction": "bidirectional"}),
    }
    return rows


ROWS = _rows()
