"""irexec generate"""

from __future__ import annotations

from typing import Any

import click

from irexec.cli import render
from irexec.cli.option_groups import Option, OptionGroup, command, flag, json_option, option, settings
from irexec.cli.options import LIMITS, LimitOptions
from irexec.cli.render import progress_bar, show_next_command
from irexec.cli.run_options import COMPUTE, ComputeOptions
from irexec.cli.runtime_options import ENVIRONMENTS, PROPERTIES, RUNTIME, RUNTIME_NAMES
from irexec.cli.values import FilePath, Parsed
from irexec.tools.generating import GenerateOptions, generation_sections, text_sections
from irexec.tools.generating import generate as generated
from irexec.tools.generating.exported import model_file


def _ids(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise ValueError(f"{text!r} is not a list of token ids, expected such as 1,15,7") from None


def _prompt(prompt: str | None, ids: tuple[int, ...] | None) -> Any:
    if (prompt is None) == (ids is None):
        raise click.UsageError("give the prompt either as text with -p or as token ids with --ids")
    return ids if prompt is None else prompt


_PROMPT = OptionGroup(
    "Prompt",
    _prompt,
    {
        "prompt": option("-p", "--prompt", "The text to continue, without a chat template.", metavar="TEXT"),
        "ids": option("The prompt as token ids.", type=Parsed("ids", _ids), metavar="ID,ID..."),
    },
)
_TOKENS = OptionGroup(
    "Tokens",
    GenerateOptions,
    {
        "max_new_tokens": option(
            "Stop after this number of tokens, or before at an end token.", type=click.IntRange(1)
        ),
        "temperature": option("Sample with this temperature.", type=click.FloatRange(0, min_open=True)),
        "top_k": option("Sample from this number of the most probable tokens.", type=click.IntRange(1)),
        "top_p": option(
            "Sample from the most probable tokens that together have this probability.",
            type=click.FloatRange(0, 1, min_open=True),
        ),
        "seed": option("For sampling.", type=click.IntRange(0)),
    },
)
_BESIDE = OptionGroup(
    "Another runtime",
    GenerateOptions,
    {
        "runtime": option(f"Run the same steps in it: {RUNTIME_NAMES}.", type=RUNTIME, metavar="RUNTIME"),
        # -p is the prompt.
        "properties": Option(("--property",), PROPERTIES.settings),
        "environments": ENVIRONMENTS,
        "save_inputs": option("Write the inputs of each step to a .npz; {} in its name is the step.", type=FilePath()),
    },
)


@command()
@click.argument("folder", type=FilePath(), metavar="DIR")
@_PROMPT("prompt")
@_TOKENS("tokens")
@_BESIDE("beside")
@COMPUTE("compute", only=("precision", "dynamic_quantization"))
@LIMITS("limits", timeout="Stop a step that takes longer; exit code 124.")
@flag("--trace", "Show each token with its probability and the runner-up.")
@json_option
def generate(
    folder: str,
    prompt: Any,
    tokens: GenerateOptions,
    beside: GenerateOptions,
    compute: ComputeOptions,
    limits: LimitOptions,
    trace: bool,
    as_json: bool,
) -> int:
    """Continue a prompt with a language model, or that in a folder of optimum-intel, and show where runtimes differ.

    \b
    irexec generate DIR -p "Once upon a time" --trace
    irexec generate DIR -p "Once upon a time" --runtime openvino
    irexec generate DIR -p "Once upon a time" --temperature 0.8 --seed 1
    irexec generate model.onnx --ids 1,450,12 --runtime onnxruntime --trace

    The most probable token is chosen unless an option of sampling is given. The other runtime has the tokens of irexec
    in each step. The exit code is 1 if it chooses another token in any step.
    """
    request = settings(GenerateOptions, tokens, compute, limits, **_BESIDE.of(beside))
    with progress_bar(f"running {folder}", 1.0) as advance:
        found = generated(folder, prompt, request, advance=advance)
    render.result(as_json, found.as_dict, generation_sections(found) if trace else text_sections(found))
    if not as_json and found.first is not None and request.save_inputs is not None and found.runtime is not None:
        # The comparison of all layers up to the step in which the runtimes part.
        steps = ["-i", request.save_inputs, f"--steps={found.first}"]
        show_next_command("compare", str(model_file(found.folder)), "--b-runtime", found.runtime, *steps)
    return 0 if found.agrees else 1
