"""Options of a generation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from irexec.errors import InputError
from irexec.tools.engines.runtimes import require_runtime
from irexec.tools.run.shapes import RunOptions


@dataclass(frozen=True, kw_only=True)
class GenerateOptions(RunOptions):
    """How tokens are chosen, and what runs beside irexec.

    Attributes:
        max_new_tokens: number of tokens after which the generation stops without an end token.
        temperature: divisor of the logits. Tokens are sampled if it, ``top_k`` or ``top_p`` is given, and otherwise the
            most probable one is chosen.
        top_k: number of the most probable tokens that are sampled from.
        top_p: only the most probable tokens are sampled that together have at least this probability.
        runtime: runs the same steps beside irexec; None for none.
        properties, environments: as for CompareOptions, of the runtime.
        timeout: seconds that each step of irexec, and all steps of the runtime together, may take.
        save_inputs: a .npz for the inputs of each step, with {} where the number of the step is.
    """

    max_new_tokens: int = 20
    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    runtime: str | None = None
    properties: Mapping[str, str] | None = None
    environments: str | None = None
    timeout: float | None = None
    save_inputs: str | None = None

    def __post_init__(self) -> None:
        if self.max_new_tokens < 1:
            raise InputError(f"max_new_tokens is {self.max_new_tokens}, expected at least 1")
        if self.temperature is not None and not self.temperature > 0:
            raise InputError(f"the temperature is {self.temperature}, expected a number above 0")
        if self.top_k is not None and self.top_k < 1:
            raise InputError(f"top_k is {self.top_k}, expected at least 1")
        if self.top_p is not None and not 0 < self.top_p <= 1:
            raise InputError(f"top_p is {self.top_p}, expected a number above 0 and at most 1")
        if self.runtime is not None:
            require_runtime(self.runtime, self.properties)
        elif self.properties:
            raise InputError("properties are for a runtime beside irexec, and there is none")

    @property
    def is_sampled(self) -> bool:
        """Whether tokens are sampled."""
        return any(value is not None for value in (self.temperature, self.top_k, self.top_p))
