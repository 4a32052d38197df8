"""The generation of text: the options, the choice of the next token, the steps and the result."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from irexec.display import Column, Content, Table, Text, sections_of
from irexec.errors import InputError
from irexec.io.writer import check_file
from irexec.messages import counted, silent
from irexec.records import Record, Records, Report
from irexec.runtime.compiled_model import CompiledModel
from irexec.tools.engines.runtimes import open_runtime, require_runtime
from irexec.tools.generating.exported import ExportedModel
from irexec.tools.images import ImageOptions
from irexec.tools.run.input_sources import STEP
from irexec.tools.run.result_files import write_results
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


def softmax(logits: np.ndarray) -> np.ndarray:
    """Probabilities in f64 of logits [vocabulary]."""
    shifted = np.exp(logits.astype(np.float64) - logits.max())
    return np.asarray(shifted / shifted.sum())


def ranked(logits: np.ndarray) -> np.ndarray:
    """Token ids by decreasing logit; of equal ones the smaller id comes first, as in argmax."""
    return np.argsort(-logits.astype(np.float64), kind="stable")


def next_token(logits: np.ndarray, options: GenerateOptions, draw: float) -> int:
    """The next token.

    Sampling applies temperature, top_k and top_p in this order, as transformers does.

    Args:
        logits: [vocabulary].
        options: how tokens are chosen.
        draw: a random number in [0, 1), so that two runtimes sample alike.
    """
    order = ranked(logits)
    if not options.is_sampled:
        return int(order[0])
    order = order[: options.top_k]
    weights = softmax(logits[order] / (options.temperature or 1.0))
    # A token is kept if those before it have not reached top_p.
    kept = np.cumsum(weights) - weights < (options.top_p or 1.0)
    sums = np.cumsum(weights[kept])
    return int(order[min(int(np.searchsorted(sums, draw * sums[-1], side="right")), len(sums) - 1)])


@dataclass(frozen=True)
class Choice(Record):
    """A token with its probability.

    Attributes:
        id: in the vocabulary.
        text: its part of the whole text; "" for a special token.
        probability: softmax of the logits, without temperature.
    """

    id: int
    text: str
    probability: float

    def __str__(self) -> str:
        return (
            f"{self.text!r} ({self.id}, {self.probability:.3g})" if self.text else f"{self.id} ({self.probability:.3g})"
        )


@dataclass(frozen=True)
class Beside(Record):
    """A step in another runtime, which has the same tokens before it.

    Attributes:
        choice: the token that it chooses.
        difference: the largest absolute difference between the logits of both.
    """

    choice: Choice
    difference: float


@dataclass(frozen=True)
class Token(Record):
    """A step.

    Attributes:
        step: its number, from 1.
        choice: the token.
        runner_up: the most probable other token; None in a vocabulary of one.
        beside: the same step in another runtime; None without one.
    """

    step: int
    choice: Choice
    runner_up: Choice | None
    beside: Beside | None = None

    @property
    def parts(self) -> bool:
        """Whether the other runtime chooses another token."""
        return self.beside is not None and self.beside.choice.id != self.choice.id


@dataclass(frozen=True)
class Generation(Report):
    """A generated text.

    Attributes:
        folder: the folder of the model.
        prompt: the token ids of the prompt.
        text: the text after the prompt; "" without a detokenizer.
        tokens: each step.
        ended: whether the last token is an end token.
        runtime: beside irexec; None without one.
    """

    folder: str
    prompt: Records[int]
    text: str
    tokens: Records[Token]
    ended: bool
    runtime: str | None
    _json_properties = ("agrees", "first")

    @property
    def first(self) -> int | None:
        """The first step in which the other runtime chooses another token; None if there is none."""
        return next((token.step for token in self.tokens if token.parts), None)

    @property
    def agrees(self) -> bool:
        """Whether the other runtime, if there is one, chooses the same tokens."""
        return self.first is None

    @property
    def summary(self) -> str:
        """The number of tokens and the other runtime, in a sentence."""
        end = "the last is an end token" if self.ended else "without an end token"
        count = f"{counted(len(self.prompt), 'token')} of the prompt, {len(self.tokens)} new, {end}"
        if self.runtime is None:
            return count
        largest = max(token.beside.difference for token in self.tokens if token.beside is not None)
        return f"{count}; {self._beside()}; logits differ by at most {largest:.3g}"

    def _beside(self) -> str:
        parting = next((token for token in self.tokens if token.parts), None)
        if parting is None or parting.beside is None:
            return f"{self.runtime} chooses the same tokens"
        return f"{self.runtime} parts in step {parting.step}: {parting.beside.choice} in place of {parting.choice}"


def trace_table(found: Generation) -> Table:
    """Each token with its probability and the runner-up, and the choice of the other runtime."""
    columns = [
        Column("step", lambda token: token.step, "number"),
        Column("token", lambda token: _shown(token.choice)),
        Column("probability", lambda token: f"{token.choice.probability:.4f}"),
        Column("runner-up", lambda token: _shown(token.runner_up)),
        Column("", lambda token: "" if token.runner_up is None else f"{token.runner_up.probability:.4f}"),
    ]
    if found.runtime is not None:
        columns += [
            Column(
                found.runtime,
                lambda token: Text(_shown(token.beside.choice), "error") if token.parts else "same",
            ),
            Column("logits differ by", lambda token: f"{token.beside.difference:.3g}"),
        ]
    return Table(columns, found.tokens, hide_empty=False, what="tokens")


def _shown(choice: Choice | None) -> str:
    return "" if choice is None else f"{choice.id} {choice.text!r}" if choice.text else str(choice.id)


@sections_of.register
def generation_sections(found: Generation) -> Iterable[Content]:
    """The trace, the text and the summary."""
    return [trace_table(found), *text_sections(found)]


def text_sections(found: Generation) -> list[Content]:
    """The text and the summary."""
    return [found.text, Text(found.summary, "title")]


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
