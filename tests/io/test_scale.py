"""Large files cost what their layers cost: counts of the work for each layer, which do not depend on how many there are."""

from __future__ import annotations

import gc
import os
import sys
import threading
from collections import Counter
from collections.abc import Callable
from types import CodeType
from typing import Any

import numpy as np
import pytest

import irexec
from irexec import io
from irexec.backend.recording import CHECK_PASSES
from irexec.ir.process import collection_paused
from irexec.tools.inspect.summary import summarize
from tests.benchmarks import large_files
from tests.support.memory import traced_peak
from tests.support.tiers import some

FEW, MANY = 200, 400
"""Layers; a quarter of them in the default tier."""
KINDS: dict[str, Callable[[int], bytes]] = {
    **large_files.KINDS,
    "concat": large_files.concat,
    "equal ids": large_files.equal_ids,
    "bad edges": large_files.bad_edges,
    "long names": lambda count: large_files.long_names(count, 100),
    "attribute": large_files.long_attribute,
    "depth of bodies": lambda count: large_files.nested(count // 10),
    "bodies": lambda count: large_files.tree(count // 8),
    "sparse weights": large_files.sparse_weights,
}
STAGES: dict[str, Callable[[irexec.Model], Any]] = {
    "validate": irexec.validate,
    "inspect": summarize,
    "save": io.write_text,
    "compile": lambda model: irexec.compile_model(model, threads=1),
}


def lines_run(work: Callable[[Any], Any], given: Any) -> Counter[str]:
    """How many lines of Python ``work(given)`` runs, by function."""
    count: Counter[CodeType] = Counter()

    def trace(frame: Any, event: str, argument: Any) -> Any:
        if event == "line":
            count[frame.f_code] += 1
        return trace

    # What earlier models leave is not collected, and counted, meanwhile.
    gc.collect()
    with collection_paused():
        sys.settrace(trace)
        try:
            work(given)
        finally:
            sys.settrace(None)
    return Counter({f"{code.co_filename}:{code.co_firstlineno} {code.co_name}": lines for code, lines in count.items()})


def assert_linear(work: Callable[[Any], Any], small: Any, large: Any) -> None:
    """What is twice as large takes about twice the lines, in every function but for a few hundred lines.

    A chain has up to 48 operands, whatever the size of the model: this number of lines are those of one chain more.
    """
    few, many = lines_run(work, small), lines_run(work, large)
    assert many.total() <= 2.2 * few.total()
    assert {name: (few[name], lines) for name, lines in many.items() if lines > max(2.4 * few[name], 1500)} == {}


def model_of(text: bytes) -> irexec.Model:
    return irexec.read_model(text, np.zeros(512 << 20, np.uint8))


@pytest.mark.parametrize("part", some((1, 4), (4,)))
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.slow
def test_work_is_linear(kind: str, part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice as many take about twice the lines of Python, in every stage."""
    # The checks of the tests after each pass are not part of the work.
    monkeypatch.setenv(CHECK_PASSES, "0")
    texts = [KINDS[kind](count // part) for count in (FEW, MANY)]
    irexec.validate(model_of(texts[0]))
    assert_linear(io.read_text, *texts)
    models = [model_of(text) for text in texts]
    # Attributes are parsed once for each model.
    findings = [finding for model in models for finding in irexec.validate(model)]
    has_errors = any(finding.severity == "error" for finding in findings)
    for stage, work in STAGES.items():
        if stage in ("save", "compile") and has_errors:
            continue
        work(model_of(texts[0]))
        assert_linear(work, *models)


@pytest.mark.slow
def test_a_model_of_many_layers_is_small() -> None:
    """Objects that stay for each layer of a chain: the layer, its ports, their lists and dictionaries, and nothing twice."""
    made = []
    for count in (FEW, MANY):
        text = large_files.chain(count)
        gc.collect()
        before = len(gc.get_objects())
        model = io.read_text(text)
        gc.collect()
        made.append(len(gc.get_objects()) - before)
        del model
    assert (made[1] - made[0]) / (MANY - FEW) <= 9


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "work", [io.read_text, lambda text: io.write_text(io.read_text(text))], ids=["read", "read and save"]
)
def test_only_one_layer_is_held_as_xml(work: Callable[[bytes], Any]) -> None:
    """Bytes at the peak for each layer: as elements a layer of this file takes 7 kB."""
    peaks = []
    for count in (FEW, 4 * MANY):
        text = large_files.chain(count)
        peaks.append(traced_peak(lambda text=text: work(text)))
    assert (peaks[1] - peaks[0]) / (4 * MANY - FEW) < 4500


class TestCollection:
    def test_is_as_it_was(self) -> None:
        for enabled in (True, False):
            (gc.enable if enabled else gc.disable)()
            try:
                with collection_paused():
                    assert not gc.isenabled()
                    with collection_paused():
                        assert not gc.isenabled()
                    assert not gc.isenabled()
                assert gc.isenabled() == enabled
                with pytest.raises(irexec.ModelError):
                    io.read_text("<net/>")
                assert gc.isenabled() == enabled
            finally:
                gc.enable()

    def test_with_blocks_of_several_threads_it_comes_back_after_the_last(self) -> None:
        inside, leave = threading.Event(), threading.Event()

        def other() -> None:
            with collection_paused():
                inside.set()
                leave.wait(10)

        thread = threading.Thread(target=other)
        with collection_paused():
            thread.start()
            assert inside.wait(10)
        assert not gc.isenabled()
        leave.set()
        thread.join()
        assert gc.isenabled()

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
    @pytest.mark.filterwarnings("ignore::DeprecationWarning")
    def test_a_child_process_collects(self) -> None:
        with collection_paused():
            child = os.fork()
            if child == 0:
                os._exit(0 if gc.isenabled() else 1)
            assert os.waitpid(child, 0)[1] == 0
        assert gc.isenabled()
