"""Faults outside of the compiler."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

TOOLS = (
    Mutation(
        "a new file is not flushed to the disk before it replaces the old one",
        "irexec/io/files.py",
        "                if flushes:\n",
        "                if not flushes:\n",
        ("tests/io/test_replacing.py",),
    ),
    Mutation(
        "a stale score of a candidate is compared the wrong way",
        "irexec/analysis/matching/match.py",
        "            if score < -negative - 1e-9:\n",
        "            if score > -negative + 1e-9:\n",
        ("tests/analysis/test_matching.py",),
    ),
    Mutation(
        "a histogram has the range of the last block",
        "irexec/tools/arrays/statistics.py",
        "low, high = (lowest, highest) if low is None or high is None else (min(low, lowest), max(high, highest))",
        "low, high = lowest, highest",
        ("tests/tools/test_agreement.py",),
    ),
    Mutation(
        "a job continues although it has further items",
        "irexec/tools/batch/manifest.py",
        'return "" if count == len(items) else',
        'return "" if count <= len(items) else',
        ("tests/tools/batch/test_outputs.py",),
    ),
    Mutation(
        "decibels of amplitudes instead of powers",
        "irexec/tools/arrays/agreement.py",
        "return 10 * math.log10(ratio)",
        "return 20 * math.log10(ratio)",
        ("tests/tools/test_agreement.py",),
    ),
    Mutation(
        "reduce accepts a part that fails in another way",
        "irexec/tools/reduce/search.py",
        "same = failure is not None and failure.kind == self.failure.kind",
        "same = failure is not None",
        ("tests/tools/reduce/test_reduction.py tests/tools/reduce/test_checks.py",),
    ),
    Mutation(
        "an If costs as much as its cheaper branch",
        "irexec/analysis/cost.py",
        "larger = max(known, key=lambda name: known[name])",
        "larger = min(known, key=lambda name: known[name])",
        ("tests/analysis/test_cost.py",),
    ),
    Mutation(
        "one request more waits than may",
        "irexec/tools/serving.py",
        "if self.waiting >= self._max_waiting:",
        "if self.waiting > self._max_waiting:",
        ("tests/tools/serving/test_batcher.py",),
    ),
    Mutation(
        "a run that takes too long ends as an invalid model",
        "irexec/cli/main.py",
        "        return TIMED_OUT\n",
        "        return INVALID\n",
        ("tests/cli/test_limits.py tests/cli/test_exit.py tests/cli/infer",),
    ),
    Mutation(
        "quotients of positive integers may be cut",
        "irexec/analysis/portability/integers.py",
        "return (layer.may_be_negative(0) or layer.may_be_negative(1)) and not exact",
        "return not exact",
        ("tests/analysis/portability tests/analysis/test_portability.py",),
    ),
    Mutation(
        "the last byte of a constant may lie beyond the file",
        "irexec/io/sources.py",
        "return offset + size <= self.size",
        "return offset + size <= self.size + 1",
        ("tests/io/test_reader.py",),
    ),
    Mutation(
        "a bug of a layer is small although a result differs",
        "irexec/tools/judge/verdicts.py",
        "is_small and not step.differing else",
        "is_small else",
        ("tests/tools/judge/test_evidence.py",),
    ),
    Mutation(
        "NaN of the model excuses a NaN that is lost",
        "irexec/tools/judge/verdicts.py",
        "_outside, _fused, _freed, _of_the_model,",
        "_outside, _fused, _of_the_model, _freed,",
        ("tests/tools/judge/test_judge.py",),
    ),
    Mutation(
        "an unexplained difference is rounding",
        "irexec/tools/judge/verdicts.py",
        "if not all(own <= _ENOUGH * made for own, made in sizes):",
        "if not sizes:",
        ("tests/tools/judge/test_evidence.py",),
    ),
    Mutation(
        "a layer that amplifies is the reason only where it does not",
        "irexec/tools/judge/verdicts.py",
        "    if ratio < _AMPLIFIES:\n",
        "    if ratio > _AMPLIFIES:\n",
        ("tests/tools/judge/test_judge.py",),
    ),
    Mutation(
        "what a layer without a bound computes agrees",
        "irexec/tools/judge/verdicts.py",
        'one for one in step.judged if one.state in ("no bound", "unconfirmed")',
        'one for one in step.judged if one.state in ("unconfirmed",)',
        ("tests/tools/judge/test_judge.py",),
    ),
    Mutation(
        "offsets of a cache are those of the file alone",
        "irexec/tools/inside/__init__.py",
        "for base in (at, 0):",
        "for base in (0,):",
        ("tests/tools/test_inside.py",),
    ),
    Mutation(
        "PowerStatic scales what it has shifted",
        "irexec/tools/inside/published.py",
        '(("Multiply", "scale", 1.0), ("Add", "shift", 0.0), ("Power", "power", 1.0))',
        '(("Add", "shift", 0.0), ("Multiply", "scale", 1.0), ("Power", "power", 1.0))',
        ("tests/tools/test_inside.py",),
    ),
)
