"""The option groups that several commands share. Each has the same flags, defaults and meaning in every command."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import click

from irexec.cli.option_groups import OptionGroup, flag, option, refuse_without
from irexec.cli.values import (
    MEMORY_SIZE,
    SECONDS,
    SHAPES_GIVEN,
    FilePath,
    ShapeOptions,
    ThreadCount,
    shapes_by_input,
    shapes_by_name,
)

if TYPE_CHECKING:
    from irexec.ir.dims import PartialShape
    from irexec.tools.run.input_sources import InputSource
    from irexec.tools.run.shapes import Shapes


@dataclass(frozen=True, kw_only=True)
class WeightsOptions:
    """Where the weights come from.

    Attributes:
        weights: the .bin; None is the file of the model's name.
        mmap: whether the .bin is mapped.
    """

    weights: str | None = None
    mmap: bool = True


WEIGHTS = OptionGroup(
    "Weights",
    WeightsOptions,
    {
        "weights": option("--bin", "The weights; default: the .bin beside the model.", type=FilePath()),
        "mmap": flag(
            "--no-mmap",
            "Read the .bin into memory instead of mapping it, so that other programs may change the file.",
            value=False,
        ),
    },
)


@dataclass(frozen=True, kw_only=True)
class InputOptions:
    """Inputs of a run.

    Attributes:
        given: the values of -i as typed.
        shapes: new shapes of inputs by name; None is the only input.
        seed: for random inputs.
        runs: number of runs, in commands that measure.
    """

    given: tuple[str, ...] = ()
    shapes: Shapes
    seed: int = 0
    runs: int = 1

    @cached_property
    def sources(self) -> list[InputSource]:
        """The inputs; raises InputError for one that cannot be parsed."""
        # Commands that run nothing have options of this group, too, and need not load what runs a model.
        from irexec.tools.run.input_sources import parse_input_source

        return [parse_input_source(text) for text in self.given]


def _inputs(shapes: tuple[ShapeOptions, ...] = (), **values: Any) -> InputOptions:
    return InputOptions(shapes=shapes_by_input(shapes, "--shape"), **values)


INPUTS = OptionGroup(
    "Inputs",
    _inputs,
    {
        "given": option(
            "-i",
            "--input",
            "As for irexec infer, whose --save-inputs writes scaled images; may be repeated. Default: random.",
            multiple=True,
            metavar="[NAME=]SOURCE",
        ),
        "shapes": option("--shape", "Set the shape of an input; may be repeated.", **SHAPES_GIVEN),
        "seed": option("For random inputs.", type=click.IntRange(0), default=0),
    },
)
SHAPES = OptionGroup("Inputs", _inputs, {"shapes": INPUTS.options["shapes"]})
MEASURING = OptionGroup(
    "Inputs and runs",
    _inputs,
    {
        **INPUTS.options,
        "runs": option("Number of measured runs.", type=click.IntRange(1, 1_000_000), default=20),
    },
)


@dataclass(frozen=True, kw_only=True)
class LimitOptions:
    """Limits of a run.

    Attributes:
        threads: number of threads of a step; None is the default.
        max_memory: bytes that the process may use; None is all that is available.
        timeout: seconds that all runs together may take; None means unlimited.
    """

    threads: int | None = None
    max_memory: int | None = None
    timeout: float | None = None


LIMITS = OptionGroup(
    "Limits",
    LimitOptions,
    {
        "threads": option("Number of threads; default: all available cores.", type=ThreadCount()),
        "max_memory": option(
            "Refuse tensors with which the process would exceed this memory, such as 2G; default: all available.",
            type=MEMORY_SIZE,
            metavar="SIZE",
        ),
        "timeout": option("Stop the run after this time; exit code 124.", type=SECONDS, metavar="SECONDS"),
    },
)


@dataclass(frozen=True, kw_only=True)
class ToleranceOptions:
    """The difference up to which two tensors agree.

    Attributes:
        rtol, atol: relative and absolute tolerance; None is the default of the tool.
    """

    rtol: float | None = None
    atol: float | None = None


def tolerance(of: str, *, rtol: float, atol: float) -> OptionGroup:
    """``--rtol`` and ``--atol`` of the option ``of``, with defaults."""
    return OptionGroup(
        "Tolerance",
        ToleranceOptions,
        {
            "rtol": option(f"Relative tolerance of {of}.", default=rtol),
            "atol": option(f"Absolute tolerance of {of}.", default=atol),
        },
    )


@dataclass(frozen=True, kw_only=True)
class Verify:
    """Whether the written model is compared with its source, with which sizes of inputs and which tolerances."""

    wanted: bool
    shapes: Mapping[str, PartialShape]
    seed: int
    rtol: float
    atol: float


def _verify_options(verify: bool, verify_shapes: tuple[ShapeOptions, ...] = (), **values: Any) -> Verify:
    if not verify and not verify_shapes:
        refuse_without("verify", "seed", "rtol", "atol")
    shapes = shapes_by_name(verify_shapes, "--verify-shape")
    return Verify(wanted=verify or bool(verify_shapes), shapes=shapes, **values)


VERIFY = OptionGroup(
    "Verification",
    _verify_options,
    {
        "verify": flag(
            "Run the ONNX model (by ONNX Runtime if installed, else by the reference evaluator of onnx) and the "
            "IR on the same random inputs, and compare the results; with --for, the original and the IR. Dynamic "
            "dimensions stay dynamic in the IR and get random sizes here."
        ),
        "verify_shapes": option(
            "--verify-shape",
            "The shape of an input for --verify only; the IR is not changed. Implies --verify; may be repeated.",
            **SHAPES_GIVEN,
        ),
        "seed": option("For the random inputs and sizes of --verify.", type=click.IntRange(0), default=0),
        **tolerance("--verify", rtol=1e-3, atol=1e-4).options,
    },
)


LOAD_STATE = option(
    "--load-state",
    "The variables before the first step: a .npz by variable_id, of infer --save-state.",
    type=FilePath(),
)
_OF_EACH_STEP = (
    "{} in the name of a file of -i is the step, and an array with one more axis than its input has the values of each "
    "step."
)
STEPS = option(
    "--steps",
    f"Number of runs one after the other, with state from step to step; {_OF_EACH_STEP}",
    type=click.IntRange(1, 100_000),
)


DYNAMIC_QUANTIZATION = option(
    "--dynamic-quantization",
    "Quantise the rows that are multiplied by weights of 4 and 8 bits, by groups of this size, as OpenVINO's CPU "
    "plugin does by default with 32.",
    type=click.IntRange(16),
    metavar="GROUP",
)
