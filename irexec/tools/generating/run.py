"""The generation of text, step by step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from irexec.errors import InputError
from irexec.io.writer import check_file
from irexec.messages import silent
from irexec.records import Records
from irexec.runtime.compiled_model import CompiledModel
from irexec.tools.engines.runtimes import open_runtime
from irexec.tools.generating.choice import next_token, ranked, softmax
from irexec.tools.generating.exported import ExportedModel
from irexec.tools.generating.options import GenerateOptions
from irexec.tools.generating.result import Beside, Choice, Generation, Token
from irexec.tools.images.images import ImageOptions
from irexec.tools.run.input_sources import STEP
from irexec.tools.run.result_files import write_results

Advance = Callable[[float], object]
_OWN_PART = 0.7
"""The part of the work that irexec does, where a runtime runs beside it."""


def generate(
    folder: str,
    prompt: str | Sequence[int],
    options: GenerateOptions | None = None,
    *,
    advance: Advance = silent,
) -> Generation:
    """Continue a prompt with a language model, beside another runtime if the options name one.

    The runtime has the tokens of irexec in each step, so that an early difference is not the reason of later ones.

    Args:
        folder: with openvino_model.xml and, for a prompt that is text, openvino_tokenizer.xml.
        prompt: a text, which is given to the tokenizer as it is, or token ids.
        options: how tokens are chosen, and what runs beside irexec.
        advance: called with each finished part of the work, of 1.

    Raises:
        InputError: the prompt has no tokens, the model has other inputs, or an option does not fit.
        ModelError, NodeError, UnsupportedError: a model cannot be read or run.
        EngineError: the other runtime refuses the model.
        RunTimeoutError: a step takes longer than the timeout.
    """
    options = options or GenerateOptions()
    exported = ExportedModel(folder)
    start = exported.encoded(prompt) if isinstance(prompt, str) else list(map(int, prompt))
    if not start:
        raise InputError("the prompt has no tokens")
    if options.save_inputs is not None:
        _check_saved(options.save_inputs, str(exported.path))
    share = _OWN_PART if options.runtime else 1.0
    made = _Generating(exported, start, options)
    made.run(lambda: advance(share / options.max_new_tokens))
    beside = None if options.runtime is None else made.beside(options.runtime)
    advance(1 - share)
    return made.found(folder, beside)


def _check_saved(path: str, model: str) -> None:
    if STEP not in path or not path.lower().endswith(".npz"):
        raise InputError(f"--save-inputs {path}: inputs are written to a .npz for each step, with {STEP} in its name")
    check_file("--save-inputs", Path(path), {model: "the model"})


class _Generating:
    """A generation while it is made.

    Args:
        exported: the model.
        start: the tokens of the prompt.
        options: the options.
    """

    def __init__(self, exported: ExportedModel, start: Sequence[int], options: GenerateOptions) -> None:
        self._exported, self._start, self._options = exported, list(start), options
        self._tokens = list(start)
        # The random number of each step is the same for both runtimes.
        self._draws = np.random.default_rng(options.seed).random(options.max_new_tokens)
        self._logits: list[np.ndarray] = []

    def run(self, advance: Callable[[], object]) -> None:
        """Choose tokens in irexec until an end token, or until there are enough."""
        options, exported = self._options, self._exported
        session = CompiledModel(
            exported.model, threads=options.threads, precision=options.precision, max_memory=options.max_memory
        ).session()
        past = 0
        for draw in self._draws:
            feeds = exported.feeds(self._tokens, past)
            if options.save_inputs is not None:
                path = options.save_inputs.replace(STEP, str(len(self._logits) + 1))
                write_results(path, feeds, ImageOptions(), lambda text: None)
            (logits,) = session.values(feeds, [exported.logits], timeout=options.timeout)
            past = len(self._tokens)
            self._logits.append(_last(logits))
            self._tokens.append(next_token(self._logits[-1], options, draw))
            advance()
            if self._tokens[-1] in exported.ends:
                return

    def beside(self, name: str) -> list[np.ndarray]:
        """The logits of each step in another runtime, which has the tokens of irexec."""
        options, count = self._options, len(self._start)
        ends = range(count, count + len(self._logits))
        feeds = [self._exported.feeds(self._tokens[:end], end - 1 if end > count else 0) for end in ends]
        with open_runtime(
            name,
            self._exported.model,
            properties=options.properties,
            threads=options.threads,
            precision=options.precision,
            max_memory=options.max_memory,
            timeout=options.timeout,
            environments=options.environments,
        ) as runtime:
            return [_last(logits) for (logits,) in runtime.run_all(feeds, [self._exported.logits])]

    def found(self, folder: str, beside: Sequence[np.ndarray] | None) -> Generation:
        """The result, with the choices of the other runtime from its logits."""
        count = len(self._start)
        rows = [self._row(step, None if beside is None else beside[step]) for step in range(len(self._logits))]
        return Generation(
            folder=folder,
            prompt=Records(self._start),
            text=self._exported.text_after(self._start, *self._tokens[count:]),
            tokens=Records(rows),
            ended=self._tokens[-1] in self._exported.ends,
            runtime=self._options.runtime,
        )

    def _row(self, step: int, other: np.ndarray | None) -> Token:
        logits, before = self._logits[step], self._tokens[: len(self._start) + step]
        chosen = self._tokens[len(before)]
        weights = softmax(logits)
        second = next((int(token) for token in ranked(logits)[:2] if token != chosen), None)
        beside = None
        if other is not None:
            token = next_token(other, self._options, self._draws[step])
            difference = float(np.abs(logits.astype(np.float64) - other.astype(np.float64)).max())
            beside = Beside(self._choice(before, token, softmax(other)), difference)
        return Token(
            step + 1,
            self._choice(before, chosen, weights),
            None if second is None else self._choice(before, second, weights),
            beside,
        )

    def _choice(self, before: Sequence[int], token: int, weights: np.ndarray) -> Choice:
        return Choice(token, self._exported.text_after(before, token), float(weights[token]))


def _last(logits: np.ndarray) -> np.ndarray:
    """The logits [vocabulary] after the last token."""
    return np.asarray(logits).reshape(-1, logits.shape[-1])[-1]
