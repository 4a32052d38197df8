"""Normalization of strings: replacements by patterns, by charsmaps, by Unicode's normal forms and case folding."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Literal, TypeVar

import numpy as np

from irexec.dtypes.elements import BOOLEAN, U8
from irexec.errors import check
from irexec.ir.facts import Fact
from irexec.plugins import operation
from irexec.schema.opdef import Tensor
from irexec.tokenizers.packed import (
    Bytes,
    Flags,
    Offsets,
    converted,
    converted_facts,
    converted_with_flags,
    raw_bytes,
    text,
)
from irexec.tokenizers.patterns import Pattern, compile_pattern, expand
from irexec.tokenizers.unicode_forms import Spaces, form_rules, normalized, precompiled

_T = TypeVar("_T")
# Patterns of earlier converters, which OpenVINO replaces.
_REPLACED = {
    rb" ([\\.\\?\\!,])| ('[ms])| (') | ('[rv]e)| (n't)": rb"(?| ([\\.\\?\\!,])| ('[ms])| (') | ('[rv]e)| (n't))",
    rb"(^)(.)": rb"(^)([\s\S])",
    rb"(^)(.+)": rb"(^)([\s\S])",
}


@operation("RegexNormalization", domain="extension")
def regex_normalization(
    begins: Offsets, ends: Offsets, chars: Bytes, *skips_and_patterns: Tensor, global_replace: bool = True
) -> tuple[np.ndarray, ...]:
    """Strings in which the matches of a pattern, or the first one, are replaced.

    The last two inputs are the pattern and the replacement, in which ``$1`` is a group. Strings that ``skips``, the
    input before them, marks stay as they are.
    """
    *skips, search, replacement = skips_and_patterns
    raw = bytes(search)
    pattern, new = compile_pattern(_REPLACED.get(raw, raw)), _with_dollars(text(bytes(replacement)))
    replace = functools.partial(_replaced, pattern=pattern, replacement=new, everywhere=global_replace)
    return converted_with_flags(begins, ends, chars, skips[0] if skips else None, replace)


@regex_normalization.shape_rule
def _regex_normalization_facts(begins: Fact, ends: Fact, chars: Fact, *skips_and_patterns: Fact) -> tuple[Fact, ...]:
    check(len(skips_and_patterns) in (2, 3), f"has {3 + len(skips_and_patterns)} inputs, expected 5 or 6")
    *skips, search, replacement = skips_and_patterns
    check_text(search, "the pattern")
    check_text(replacement, "the replacement")
    return _facts(begins, ends, chars, *skips)


def check_text(fact: Fact, name: str) -> None:
    """Raise OpError unless a tensor can have the bytes of one text."""
    check(fact.element in (None, U8), f"{name} has element type {fact.element}, expected u8")
    check(fact.rank in (None, 1), f"{name} has rank {fact.rank}, expected 1")


def _facts(begins: Fact, ends: Fact, chars: Fact, skips: Fact | None = None) -> tuple[Fact, ...]:
    """The shape rule of all normalizations: strings of the same shape, and skips."""
    strings = converted_facts(begins, ends, chars)
    if skips is None:
        return strings
    check(skips.element in (None, BOOLEAN), f"skips has element type {skips.element}, expected boolean")
    return *strings, Fact(BOOLEAN, skips.shape)


def _with_dollars(replacement: str) -> str:
    """A replacement with ``\\1`` written as ``$1``."""
    for digit in "123456789":
        replacement = replacement.replace(f"\\{digit}", f"${digit}")
    return replacement


def _replaced(raw: bytes, pattern: Pattern, replacement: str, everywhere: bool) -> bytes:
    """The string with its matches replaced; as it is where OpenVINO's buffer for the result is too small."""
    string = text(raw)
    parts: list[str] = []
    end = size = room = 0
    for match in pattern.matches(string, None if everywhere else 1):
        new = expand(pattern, match, replacement)
        if new is None:
            return raw
        if not parts:
            # One more than the last group that takes part in the first match.
            returned = 1 + max(i for i in range(len(pattern.groups)) if pattern.span(match, i) is not None)
            room = 4 * (len(raw) + returned * len(raw_bytes(replacement)))
        parts += [string[end : match.start()], new]
        size += len(raw_bytes(parts[-2])) + len(raw_bytes(new))
        if size >= room:
            return raw
        end = match.end()
    if not parts:
        return raw
    result = raw_bytes("".join([*parts, string[end:]]))
    return result if len(result) < room else raw


@operation("CharsMapNormalization", domain="extension")
def chars_map_normalization(
    begins: Offsets,
    ends: Offsets,
    chars: Bytes,
    *skips_and_charsmap: Tensor,
    add_dummy_prefix: bool = False,
    remove_extra_whitespaces: bool = True,
    escape_whitespaces: bool = False,
    normalization_form: str = "",
    case_fold: bool = False,
    nmt: bool = False,
) -> tuple[np.ndarray, ...]:
    """Strings normalized by the rules of a precompiled charsmap of SentencePiece, which is the last input, or by those
    of ``normalization_form``. Strings that ``skips``, the fourth input, marks stay as they are.

    The longest rule counts at each position. ``add_dummy_prefix`` puts a space before each string,
    ``remove_extra_whitespaces`` removes spaces at the ends and after other spaces, and ``escape_whitespaces`` writes
    spaces as U+2581. ``nmt`` has no effect.
    """
    skips, charsmaps = _skips_and_charsmap(skips_and_charsmap, normalization_form)
    rules = form_rules(normalization_form, case_fold) if normalization_form else precompiled(bytes(charsmaps[0]))
    spaces = Spaces(add_dummy_prefix, remove_extra_whitespaces, escape_whitespaces)
    normalize = functools.partial(normalized, rules=rules, spaces=spaces)
    return converted_with_flags(begins, ends, chars, skips[0] if skips else None, normalize)


@chars_map_normalization.shape_rule
def _chars_map_normalization_facts(
    begins: Fact, ends: Fact, chars: Fact, *skips_and_charsmap: Fact, normalization_form: str
) -> tuple[Fact, ...]:
    skips, charsmaps = _skips_and_charsmap(skips_and_charsmap, normalization_form)
    for fact in charsmaps:
        check_text(fact, "the charsmap")
    return _facts(begins, ends, chars, *skips)


def _skips_and_charsmap(inputs: tuple[_T, ...], form: str) -> tuple[tuple[_T, ...], tuple[_T, ...]]:
    """The skips, if there are any, and the charsmap."""
    at = len(inputs) if form else len(inputs) - 1
    check(0 <= at <= 1, f"has {3 + len(inputs)} inputs, expected {'3 or 4' if form else '4 or 5'}")
    return inputs[:at], inputs[at:]


@operation("NormalizeUnicode", domain="extension")
def normalize_unicode(
    begins: Offsets,
    ends: Offsets,
    chars: Bytes,
    skips: Flags | None = None,
    *,
    normalization_form: Literal["NFC", "NFD", "NFKC", "NFKD"] = "NFD",
) -> tuple[np.ndarray, ...]:
    """Strings in a normal form of Unicode, by rules as in CharsMapNormalization. Strings that ``skips`` marks stay as
    they are."""
    return _by_rules(begins, ends, chars, skips, normalization_form, False)


normalize_unicode.shape_rule(_facts)


@operation("CaseFold", domain="extension")
def case_fold(
    begins: Offsets,
    ends: Offsets,
    chars: Bytes,
    skips: Flags | None = None,
    *,
    encoding: Literal["utf-8", ""] = "utf-8",
    lower: bool = True,
) -> tuple[np.ndarray, ...]:
    """Strings folded to lower case by Unicode's simple case folding; with an empty ``encoding`` the letters of ASCII
    alone, to lower or to upper case, in all strings. Strings that ``skips`` marks stay as they are otherwise."""
    if encoding:
        return _by_rules(begins, ends, chars, skips, "identity", True)
    convert: Callable[[bytes], bytes] = bytes.lower if lower else bytes.upper
    return *converted(begins, ends, chars, None, convert), *(() if skips is None else (skips.copy(),))


@case_fold.shape_rule
def _case_fold_facts(*inputs: Fact, encoding: str, lower: bool) -> tuple[Fact, ...]:
    check(lower or not encoding, "with the encoding utf-8 only lower=true is possible")
    return _facts(*inputs)


def _by_rules(
    begins: np.ndarray, ends: np.ndarray, chars: np.ndarray, skips: np.ndarray | None, form: str, fold: bool
) -> tuple[np.ndarray, ...]:
    normalize = functools.partial(normalized, rules=form_rules(form, fold), spaces=Spaces())
    return converted_with_flags(begins, ends, chars, skips, normalize)
