"""The state of a model's variables, as users read and set it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any

import numpy as np

from irexec.analysis.model import Port
from irexec.analysis.shape_inference import UNKNOWN, Inference
from irexec.dtypes.elements import round_to
from irexec.errors import InputError, OpError, UnsupportedError
from irexec.ir.dims import admits, shape_text
from irexec.ir.graph import Graph, Node, Value
from irexec.records import Shown
from irexec.runtime.inputs import arrays_text, checked
from irexec.schema.attributes import Caches
from irexec.schema.opdef import cache_variable
from irexec.schema.registry import resolve


class State(dict[str, np.ndarray]):
    """The arrays of variables by variable_id, as runs read and replace them.

    Args:
        ports: the type and shape of each variable.
    """

    def __init__(self, ports: Mapping[str, Port]) -> None:
        super().__init__()
        self._ports = ports

    def check(self, name: str, array: np.ndarray) -> None:
        """Raise OpError if a variable cannot be assigned the array.

        OpenVINO's plugins refuse any shape but the one declared by ReadValue.
        """
        port = self._ports.get(name)
        # The message is made where it is needed: variables are assigned in every run.
        if port is not None and not admits(port.shape, array.shape):
            raise OpError(
                f"variable {name!r} of shape {shape_text(port.shape)} "
                f"is assigned a value of shape {shape_text(array.shape)}"
            )

    def rounded(self, name: str, array: np.ndarray) -> np.ndarray:
        """The array in the element type of a variable, which NumPy may lack."""
        port = self._ports.get(name)
        return array if port is None or port.element is None or port.element.native else round_to(port.element, array)


class VariableTransaction(MutableMapping[str, np.ndarray]):
    """Variables during one run: reads return the state before the run, writes take effect after it."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.written: dict[str, np.ndarray] = {}

    def __getitem__(self, name: str) -> np.ndarray:
        return self.state[name]

    def __setitem__(self, name: str, array: np.ndarray) -> None:
        self.state.check(name, array)
        self.written[name] = array

    def __delitem__(self, name: str) -> None:
        del self.written[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.state)

    def __len__(self) -> int:
        return len(self.state)


class KeptInputs(Caches):
    """The inputs that the kernels of a run write, in variables.

    Args:
        variables: of the run.
        names: the variable of each input, by the name of the input.
    """

    def __init__(self, variables: VariableTransaction, names: Mapping[str, str]) -> None:
        self._variables, self._names = variables, names

    def read(self, name: str, given: np.ndarray) -> np.ndarray:
        """See Caches; a layer before in the same run may have written the same variable."""
        variable = self._names[name]
        held = self._variables.written.get(variable, self._variables.state.get(variable, given))
        if held.shape != given.shape:
            raise OpError(
                f"{name} has shape {shape_text(given.shape)}, variable {variable!r} holds {shape_text(held.shape)} of "
                "the run before; reset the state"
            )
        return held.copy()

    def keep(self, name: str, array: np.ndarray) -> None:
        """See Caches; it is kept once the run has ended."""
        self._variables[self._names[name]] = self._variables.state.rounded(self._names[name], array)


class VariableStates(Shown, MutableMapping[str, np.ndarray]):
    """Arrays by variable_id; empty until something was assigned.

    What is set is copied, and must be of the variable's element type and fit its shape, as an input must.
    Deleting one restores its initial value.

    Attributes:
        arrays: the arrays themselves, which a run reads and replaces.

    Raises:
        InputError: from setting: the variable does not exist, or the type or shape does not fit.
    """

    def __init__(self, ports: Mapping[str, Port]) -> None:
        self._ports = ports
        self.arrays = State(ports)

    def __getitem__(self, name: str) -> np.ndarray:
        return self.arrays[name]

    def __setitem__(self, name: str, value: Any) -> None:
        if name not in self._ports:
            have = "; ".join(map(str, self._ports.values())) or "none"
            raise InputError(f"there is no variable {name!r}: the model has {have}")
        self.arrays[name] = checked(self._ports[name], value, "variable").copy()

    def __delitem__(self, name: str) -> None:
        del self.arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.arrays)

    def __len__(self) -> int:
        return len(self.arrays)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({arrays_text(self.items())})"


def variables_of(graph: Graph, inference: Inference) -> dict[str, Port]:
    """The variables of a graph and its bodies by variable_id, with type and shape of the first ReadValue, or of the
    input that a layer keeps."""
    found: dict[str, Port] = {}
    for node in graph.walk():
        for value in _kept(node):
            fact, variable = inference.facts.get(value, UNKNOWN), cache_variable(value)
            found.setdefault(variable, Port(variable, (variable,), fact.element, fact.shape, node))
        name = node.attributes.get("variable_id")
        if node.type == "ReadValue" and name is not None and name not in found and node.outputs:
            fact = inference.facts.get(node.outputs[0], UNKNOWN)
            found[name] = Port(name, (name,), fact.element, fact.shape, node)
    return found


def _kept(node: Node) -> list[Value]:
    """The inputs of a layer that a session keeps."""
    try:
        return [*resolve(node.type, node.version).kept_inputs(node).values()]
    except UnsupportedError:
        return []
