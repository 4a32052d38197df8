"""Text from a language model, token by token, beside another runtime if wanted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from pathlib import Path

import numpy as np

from irexec.display import Column, Content, Table, Text, sections_of
from irexec.errors import InputError
from irexec.io.writer import check_file
from irexec.messages import counted, silent
from irexec.records import Record, Records, Report
from irexec.runtime.session import Session
from irexec.tools.engines.runtimes import open_runtime, require_runtime
from irexec.tools.generating.exported import ExportedModel
from irexec.tools.images import ImageOptions
from irexec.tools.run.input_sources import STEP
from irexec.tools.run.result_files import write_results
from irexec.tools.run.shapes import RunOptions, compiled_with


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
        probability = f"{self.probability:.3g}"
        return f"{self.text!r} ({self.id}, {probability})" if self.text else f"{self.id} ({probability})"


@dataclass(frozen=True)
class Beside(Record):
    """A step in another runtime or arithmetic, which has the same tokens before it.

    Attributes:
        choice: the token that it chooses.
        difference: the largest absolute difference between the logits of both.
        cache: the cache or variable that differs most after the step; None if there are none.
        cache_difference: the largest absolute difference between the values of ``cache``.
    """

    choice: Choice
    difference: float
    cache: str | None = None
    cache_difference: float | None = None


@dataclass(frozen=True)
class Token(Record):
    """A step.

    Attributes:
        step: its number, from 1.
        choice: the token.
        runner_up: the most probable other token; None in a vocabulary of one.
        beside: the same step in another runtime; None without one.
        f32: the same step of irexec in f32; None unless it computes ``as-written``.
    """

    step: int
    choice: Choice
    runner_up: Choice | None
    beside: Beside | None = None
    f32: Beside | None = None

    @property
    def parts(self) -> bool:
        """Whether the other runtime chooses another token."""
        return self.beside is not None and self.beside.choice.id != self.choice.id


@dataclass(frozen=True)
class Generation(Report):
    """A generated text.

    Attributes:
        folder: the model, or its folder.
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
        parting, said = next((token for token in self.tokens if token.parts), None), "chooses the same tokens"
        if parting is not None and parting.beside is not None:
            said = f"parts in step {parting.step}: {parting.beside.choice} in place of {parting.choice}"
        return f"{count}; {self.runtime} {said}; logits differ by at most {largest:.3g}"


def trace_table(found: Generation) -> Table:
    """Each token with its probability and the runner-up, and the choice of the other runtime."""
    columns = [
        Column("step", lambda token: token.step, "number"),
        Column("token", lambda token: _shown(token.choice)),
        Column("probability", lambda token: f"{token.choice.probability:.4f}"),
        Column("runner-up", lambda token: _shown(token.runner_up)),
        Column("", lambda token: "" if token.runner_up is None else f"{token.runner_up.probability:.4f}"),
    ]
    for name, other in ((found.runtime, "beside"), ("f32", "f32")):
        columns += _columns_beside(name or "", other) if any(getattr(token, other) for token in found.tokens) else []
    return Table(columns, found.tokens, hide_empty=False, what="tokens")


def _columns_beside(name: str, attribute: str) -> list[Column]:
    """The choices of a runtime, or of f32, and how far it is from the tokens' own logits and caches."""
    of: Callable[[Token], Beside] = attrgetter(attribute)

    def chosen(token: Token) -> Content:
        choice = of(token).choice
        return "same" if choice.id == token.choice.id else Text(_shown(choice), "error")

    def cache(token: Token) -> str:
        one = of(token)
        return "" if one.cache is None else f"{one.cache_difference:.3g} {one.cache}"

    return [
        Column(name, chosen),
        Column("logits differ by", lambda token: f"{of(token).difference:.3g}"),
        Column("caches differ by", cache),
    ]


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
        folder: a model, or a folder with openvino_model.xml or model.onnx; openvino_tokenizer.xml is beside it if the
            prompt is text.
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
    if (path := options.save_inputs) is not None:
        if STEP not in path or not path.lower().endswith(".npz"):
            where = f"to a .npz for each step, with {STEP} in its name"
            raise InputError(f"--save-inputs {path}: inputs are written {where}")
        check_file("--save-inputs", Path(path), {str(exported.path): "the model"})
    share = _OWN_PART if options.runtime else 1.0
    made = _Generating(exported, start, options)
    made.run(lambda: advance(share / options.max_new_tokens))
    beside = None if options.runtime is None else made.beside(options.runtime)
    f32 = made.in_f32() if options.precision == "as-written" else None
    advance(1 - share)
    return made.found(folder, beside, f32)


@dataclass(frozen=True)
class _Step:
    """The logits [vocabulary] of a step, and the caches after it, of those that are asked for."""

    logits: np.ndarray
    caches: Mapping[str, np.ndarray]

    @classmethod
    def of(cls, names: Iterable[str], arrays: Sequence[np.ndarray]) -> _Step:
        """The step of the logits and of caches, with their names."""
        logits = np.asarray(arrays[0])
        caches = dict(zip(names, map(np.asarray, arrays[1:]), strict=True))
        return cls(logits.reshape(-1, logits.shape[-1])[-1], caches)

    def farthest(self, other: _Step) -> tuple[str, float] | tuple[None, None]:
        """The cache that differs most, and by how much; None if no cache is in both."""
        differences = {
            name: float(np.abs(array.astype(np.float64) - other.caches[name]).max(initial=0))
            for name, array in self.caches.items()
            if name in other.caches
        }
        return max(differences.items(), key=lambda one: one[1], default=(None, None))


class _Generating:
    """A generation while it is made."""

    def __init__(self, exported: ExportedModel, start: Sequence[int], options: GenerateOptions) -> None:
        self._exported, self._start, self._options = exported, list(start), options
        self._tokens = list(start)
        # The random number of each step is the same for both runtimes.
        self._draws = np.random.default_rng(options.seed).random(options.max_new_tokens)
        self._steps: list[_Step] = []
        # Else nobody reads the caches of earlier steps, and variables stay in the session.
        self._is_compared = options.runtime is not None or options.precision == "as-written"

    def run(self, advance: Callable[[], object]) -> None:
        """Choose tokens in irexec until an end token, or until there are enough."""
        session = compiled_with(self._options, self._exported.model).session()
        steps = self._each(lambda feeds: self._own_step(session, self._saved(feeds)))
        for step, draw in zip(steps, self._draws, strict=False):
            self._steps.append(step if self._is_compared else _Step(step.logits, {}))
            self._tokens.append(next_token(step.logits, self._options, draw))
            advance()

    def _saved(self, feeds: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The inputs of the next step, written to a file if they are asked for."""
        if self._options.save_inputs is not None:
            path = self._options.save_inputs.replace(STEP, str(len(self._steps) + 1))
            write_results(path, feeds, ImageOptions(), lambda text: None)
        return feeds

    def _own_step(self, session: Session, feeds: Mapping[str, np.ndarray]) -> _Step:
        exported = self._exported
        names = [name for name in exported.returned if self._is_compared or name in exported.caches]
        asked = [exported.logits, *(exported.returned[name] for name in names)]
        step = _Step.of(names, session.values(dict(feeds), asked, timeout=self._options.timeout))
        return _Step(step.logits, {**session.variables, **step.caches}) if self._is_compared else step

    def _each(self, run: Callable[[dict[str, np.ndarray]], _Step]) -> Iterator[_Step]:
        """All steps, with the tokens that have been chosen before each and the caches of ``run``."""
        exported, first = self._exported, len(self._start)
        caches, past = exported.start(first + len(self._draws)), 0
        for end in range(first, first + len(self._draws)):
            if end > first and self._tokens[end - 1] in exported.ends:
                return
            step = run(exported.feeds(self._tokens[:end], past, caches))
            yield step
            # The caches that the model writes stay as they are, as a session keeps them.
            caches |= {name: step.caches[name] for name in caches if name in exported.returned}
            past = end

    def in_f32(self) -> list[_Step]:
        """The steps of irexec in f32."""
        session = compiled_with(replace(self._options, precision="f32"), self._exported.model).session()
        return list(self._each(lambda feeds: self._own_step(session, feeds)))

    def beside(self, name: str) -> list[_Step]:
        """The steps in another runtime, which has the tokens of irexec and its own caches."""
        options, exported = self._options, self._exported
        with open_runtime(
            name,
            exported.model,
            properties=options.properties,
            threads=options.threads,
            precision=options.precision,
            max_memory=options.max_memory,
            dynamic_quantization=options.dynamic_quantization,
            timeout=options.timeout,
            environments=options.environments,
        ) as runtime:
            returned = {name: value for name, value in exported.returned.items() if runtime.gives(value)}
            asked = [exported.logits, *returned.values()]
            if any(name in exported.returned for name in exported.caches):
                return list(self._each(lambda feeds: _Step.of(returned, runtime.run(feeds, asked))))
            # Variables go from run to run of one call.
            runs: list[dict[str, np.ndarray]] = []

            def kept(feeds: dict[str, np.ndarray]) -> _Step:
                runs.append(feeds)
                return self._steps[len(runs) - 1]

            list(self._each(kept))
            return [_Step.of(returned, arrays) for arrays in runtime.run_all(runs, asked)]

    def found(self, source: str, beside: Sequence[_Step] | None, f32: Sequence[_Step] | None) -> Generation:
        """The result, with the choices of the other runtime and of f32."""
        count = len(self._start)
        return Generation(
            folder=source,
            prompt=Records(self._start),
            text=self._exported.text_after(self._start, *self._tokens[count:]),
            tokens=Records(
                self._row(i, beside[i] if beside else None, f32[i] if f32 else None) for i in range(len(self._steps))
            ),
            ended=self._tokens[-1] in self._exported.ends,
            runtime=self._options.runtime,
        )

    def _row(self, index: int, beside: _Step | None, f32: _Step | None) -> Token:
        logits, before = self._steps[index].logits, self._tokens[: len(self._start) + index]
        chosen = self._tokens[len(before)]
        second = next((int(token) for token in ranked(logits)[:2] if token != chosen), None)
        return Token(
            index + 1,
            self._choice(before, chosen, logits),
            None if second is None else self._choice(before, second, logits),
            None if beside is None else self._compared(index, before, beside),
            None if f32 is None else self._compared(index, before, f32),
        )

    def _compared(self, index: int, before: Sequence[int], other: _Step) -> Beside:
        step = self._steps[index]
        token = next_token(other.logits, self._options, self._draws[index])
        difference = float(np.abs(step.logits.astype(np.float64) - other.logits.astype(np.float64)).max())
        return Beside(self._choice(before, token, other.logits), difference, *step.farthest(other))

    def _choice(self, before: Sequence[int], token: int, logits: np.ndarray) -> Choice:
        return Choice(token, self._exported.text_after(before, token), float(softmax(logits)[token]))
