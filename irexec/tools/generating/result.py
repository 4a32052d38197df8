"""The result of a generation."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from irexec.display import Column, Content, Table, Text, sections_of
from irexec.messages import counted
from irexec.records import Record, Records, Report


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
