"""Judge recordings of PyTorch models in f32, f16 and bf16.

Sound: what OpenVINO's frontend and the exporter by torch.jit make of a model, beside a recording of the model itself on
this processor: an accusation fails. Powerful: a module of the recorded model has other weights, or another function; the
verdict must name this module, and may say that nothing explains it. A fault that no recorded tensor shows is "not seen".
"""

from __future__ import annotations

import contextlib
import copy
import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

from irexec.tools.judge import Judgement, judge
from tests.support.modules import recorder, settle
from tests.sweep.kind import Case, Kind, Outcome, temporary
from tests.torch_sweep import MODELS, export, plant

_TYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
_FORMS = ("openvino", "jit")


def _moved(arguments: Sequence[Any], dtype: torch.dtype) -> list[Any]:
    """Arguments with floating-point tensors of a type."""
    return [one.to(dtype) if one.is_floating_point() else one for one in arguments]


class Sweep(Kind):
    """Models by name."""

    cases = 4 * len(_TYPES)
    told = frozenset({"not exported", "not recorded"})

    def names(self) -> Sequence[str]:
        return list(MODELS)

    @contextlib.contextmanager
    def opened(self, name: str) -> Iterator[Case]:
        with temporary() as folder:
            record = recorder(folder)
            torch.manual_seed(0)
            model, arguments = MODELS[name]()
            settle(model)
            made: dict[str, str] = {}
            for form in _FORMS:
                path = folder / f"model{'.xml' if form == 'openvino' else '.onnx'}"
                try:
                    export(copy.deepcopy(model), arguments, form, path)
                    made[form] = str(path)
                except Exception as error:
                    made[form] = f"{type(error).__name__}: {str(error).splitlines()[0]}"

            def case(number: int) -> Iterator[Outcome]:
                yield _judged(model, arguments, made, number, record, folder)

            yield case


def _judged(
    model: nn.Module,
    arguments: Sequence[Any],
    made: dict[str, str],
    number: int,
    record: Callable[..., None],
    folder: Path,
) -> Outcome:
    """The outcome of a case: its type, its form, and whether a fault is planted follow from its number."""
    name = list(_TYPES)[number % len(_TYPES)]
    form, is_faulty = _FORMS[number // len(_TYPES) % 2], number // len(_TYPES) % 4 > 1
    if not made[form].startswith(str(folder)):
        return Outcome("not exported", f"{form}: {made[form]}")
    recorded, scope = copy.deepcopy(model), ""
    if is_faulty:
        scope = plant(recorded, random.Random(number))
    recorded = recorded.to(_TYPES[name])
    try:
        record(recorded, str(folder / "torch.npz"), *_moved(arguments, _TYPES[name]))
    except RuntimeError as error:  # PyTorch has not all layers in 16 bits
        return Outcome("not recorded", f"{name}: {error}")
    found = judge(made[form], runtime=str(folder / "torch.npz"))
    return _named(found, scope, name) if is_faulty else _clean(found, name)


def _clean(found: Judgement, name: str) -> Outcome:
    text = f"{found.sentence}; {found.count('inside')} of {len(found.layers)} inside"
    return Outcome(f"{name}: clean: {found.verdict}", text, found.is_bug or found.arithmetic != name)


def _named(found: Judgement, scope: str, name: str) -> Outcome:
    text = f"{scope}: {found.sentence}"
    if not found.is_bug:
        return Outcome(f"{name}: fault: {found.verdict}", text)
    blamed = found.at[0].recorded.removeprefix("module:").partition("#")[0]
    is_right = blamed == scope or scope.startswith(f"{blamed}.") or not blamed
    # A folded module has no tensor of its own: the first beside it shows the fault.
    parent = scope.rpartition(".")[0]
    is_near = blamed.startswith(f"{parent}.") if parent else "." not in blamed
    own = any(one.recorded.startswith(f"module:{scope}#") for one in found.layers)
    is_right |= is_near and not own
    return Outcome(f"{name}: fault: {'named' if is_right else 'another named'}", text, not is_right)
