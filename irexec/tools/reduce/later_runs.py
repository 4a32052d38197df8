"""Models in the state after a run: a fault of a later run is a fault of the first run of such a model."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from irexec.analysis.model import Model
from irexec.analysis.precision import Precision
from irexec.errors import IrexecError
from irexec.runtime.compiled_model import CompiledModel
from irexec.tools.run.result_files import with_state

RUNS = 8
"""Maximum number of runs of a model with variables."""


def after_run(
    model: Model, inputs: Mapping[str, np.ndarray], precision: Precision, timeout: float | None
) -> Model | None:
    """The model with the state after a run as the initial values of its variables; None without variables, or if the
    run fails.

    Args:
        model: the model, which is not changed.
        inputs: the inputs of the run, by name.
        precision: precision of f16 and bf16.
        timeout: maximum time of the run in seconds.
    """
    if not any(node.type == "Assign" for node in model.walk()):
        return None
    try:
        session = CompiledModel(model, precision=precision).session()
        session.run(inputs, timeout=timeout)
    except (IrexecError, MemoryError):
        return None
    return with_state(model, session.variables)
