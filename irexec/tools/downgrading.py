"""A model for an older release of OpenVINO: what was rewritten, and whether it computes the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from irexec.analysis.model import Model
from irexec.authoring.downgrade import Change, Downgraded, downgrade
from irexec.display import Column, Content, Table
from irexec.errors import IrexecError, NodeError
from irexec.ir.dims import PartialShape
from irexec.records import Shown
from irexec.runtime.compiled_model import CompiledModel
from irexec.tools.arrays.agreement import Tolerance, agreement_of
from irexec.tools.sections.models import findings_table
from irexec.tools.verify import Verification, sized_inputs


@dataclass(frozen=True, repr=False)
class Written(Shown):
    """A model for a release, or the reasons why there is none.

    Attributes:
        found: the model and its changes, or the findings about layers without older operations.
    """

    found: Downgraded

    def sections(self) -> list[Content]:
        """The findings or, if there are none, the layers that were replaced."""
        if self.found.findings:
            return [findings_table(self.found.findings)]
        return [changes_table(self.found.changes)] if self.found.changes else []

    def __repr__(self) -> str:
        return f"<Model for OpenVINO {self.found.release}>"


def written_for(model: Model, release: str) -> Written:
    """A copy of a model for a release; see irexec.authoring.downgrade."""
    return Written(downgrade(model, release))


def changes_table(changes: list[Change]) -> Table:
    """The layers that were replaced, with the operations in their place."""
    columns = [
        Column("layer", lambda change: change.layer, "path"),
        Column("line", lambda change: "" if change.line is None else str(change.line), "number"),
        Column("operation", "operation"),
        Column("written as", lambda change: ", ".join(change.into) or "nothing", "sentence"),
    ]
    return Table(columns, changes, what="layers")


def verify_rewriting(
    model: Model,
    written: Model,
    shapes: Mapping[str, PartialShape] | None = None,
    *,
    seed: int,
    rtol: float,
    atol: float,
) -> Verification:
    """Run a model and its rewritten copy on the same random inputs, and compare the results.

    Args:
        model, written: the two models. The outputs of version 10 have fewer types; values are compared in these.
        shapes: of inputs by name; dynamic dimensions that are not given get random sizes.
        seed: of sizes and values.
        rtol, atol: the tolerances of the comparison.

    Raises:
        InputError: the input does not exist, a shape does not fit it, or its rank is not known.
        NodeError: the model cannot run with any of the sizes that were tried.
    """
    before, after = CompiledModel(model), CompiledModel(written)
    failure: IrexecError | None = None
    for inputs in sized_inputs(model, shapes or {}, seed):
        try:
            expected = before(list(inputs.values()))
        except NodeError as error:
            failure = failure or error
            continue
        pairs = zip(inputs.values(), (port.element for port in written.inputs), strict=True)
        found = after([array if kind is None else array.astype(kind.carrier) for array, kind in pairs])
        tolerance = Tolerance(rtol=rtol, atol=atol)
        # By position: in version 10 outputs are named after other layers.
        with np.errstate(over="ignore", invalid="ignore"):
            agreements = [
                agreement_of(port.name, found[i], expected[i].astype(found[i].dtype, copy=False), tolerance)
                for i, port in enumerate(model.outputs)
            ]
        return Verification("the original", {name: array.shape for name, array in inputs.items()}, agreements)
    assert failure is not None
    raise failure
