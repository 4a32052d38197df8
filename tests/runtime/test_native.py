"""Plans of C kernels beside other threads and processes, after a fork, at exit, and when they are interrupted."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import irexec
from irexec import opset
from irexec.backend.calls import NativeKernel
from irexec.native.library import library
from irexec.runtime import execute, session
from tests.support.paths import ROOT
from tests.support.processes import python

pytestmark = pytest.mark.skipif(library() is None, reason="the C kernels were not built")

NETWORK = """
import numpy as np

import irexec


def network(repeats=3, size=24, channels=32):
    rng = np.random.default_rng(1)
    builder = irexec.Builder("m")
    x = builder.parameter("f32", (1, channels, size, size), "x")
    for i in range(repeats):
        kernel = rng.standard_normal((channels, channels, 3, 3)).astype(np.float32) / (3 * channels**0.5)
        x = builder.emit(
            "Convolution", x, kernel, name=f"conv{i}", strides=(1, 1), pads_begin=(1, 1), pads_end=(1, 1), dilations=(1, 1)
        )
        x = builder.emit("Relu", x, name=f"relu{i}")
    builder.result(x)
    return builder.model()


def inputs(size=24, channels=32):
    return [np.random.default_rng(2).standard_normal((1, channels, size, size)).astype(np.float32)]
"""
_names: dict[str, Any] = {}
exec(NETWORK, _names)
network, inputs = _names["network"], _names["inputs"]


def _in_process(code: str, timeout: float = 120) -> subprocess.CompletedProcess[str]:
    return python("-c", NETWORK + code, folder=ROOT, timeout=timeout)


def test_the_network_runs_in_c() -> None:
    """The other tests would hold for NumPy as well."""
    plan = irexec.compile_model(network(), threads=2).plan
    assert plan.native == len(plan.steps)


def test_it_agrees_with_numpy() -> None:
    expected = irexec.compile_model(network(), native=False)(inputs())[0]
    for threads in (1, 2, 4):
        found = irexec.compile_model(network(), threads=threads)(inputs())[0]
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_any_number_of_threads_gives_the_same_bits() -> None:
    alone = irexec.compile_model(network(), threads=1)(inputs())[0]
    for threads in (2, 3, 8):
        compiled = irexec.compile_model(network(), threads=threads)
        for _ in range(12):
            np.testing.assert_array_equal(compiled(inputs())[0], alone)


def test_64_threads_call_one_model() -> None:
    compiled = irexec.compile_model(network(), threads=2)
    arrays = [inputs()[0] * (i + 1) for i in range(64)]
    expected = [compiled([array])[0] for array in arrays]
    with ThreadPoolExecutor(64) as pool:
        for _ in range(3):
            for found, wanted in zip(pool.map(lambda array: compiled([array])[0], arrays), expected, strict=True):
                np.testing.assert_array_equal(found, wanted)


def test_sessions_run_at_once() -> None:
    models = [irexec.compile_model(network(repeats), threads=2) for repeats in (1, 2, 3)]
    expected = [model(inputs())[0] for model in models]

    def run(i: int) -> bool:
        session = models[i % 3].session()
        return all(np.array_equal(session(inputs())[0], expected[i % 3]) for _ in range(5))

    with ThreadPoolExecutor(6) as pool:
        assert all(pool.map(run, range(12)))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_process_runs_the_model() -> None:
    done = _in_process("""
import os
compiled = irexec.compile_model(network(), threads=2)
expected = compiled(inputs())[0]
children = []
for _ in range(4):
    child = os.fork()
    if not child:
        os._exit(0 if all((compiled(inputs())[0] == expected).all() for _ in range(8)) else 1)
    children.append(child)
codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
print(codes, (compiled(inputs())[0] == expected).all())
""")
    assert done.stdout.strip() == "[0, 0, 0, 0] True", done.stderr


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_process_that_is_forked_while_threads_compute_and_compile_runs_the_model() -> None:
    done = _in_process("""
import os, signal, threading
busy = irexec.compile_model(network(20), threads=2)
compiled = irexec.compile_model(network(), threads=2)
expected = compiled(inputs())[0]
stop = threading.Event()
def compute():
    while not stop.is_set():
        busy(inputs())
def compile():
    while not stop.is_set():
        irexec.compile_model(network(), threads=2)(inputs())
threads = [threading.Thread(target=target) for target in (compute, compile, compile)]
for thread in threads:
    thread.start()
codes = []
for _ in range(20):
    child = os.fork()
    if not child:
        signal.alarm(60)
        os._exit(0 if (irexec.compile_model(network(), threads=2)(inputs())[0] == expected).all() else 1)
    codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
stop.set()
for thread in threads:
    thread.join()
print(set(codes))
""")
    assert done.stdout.strip() == "{0}", done.stderr


@pytest.mark.slow
def test_the_interpreter_exits_while_threads_compute() -> None:
    code = """
import threading, time
compiled = irexec.compile_model(network(10, 64), threads=2)
def compute():
    while True:
        compiled(inputs(64))
for _ in range(3):
    threading.Thread(target=compute, daemon=True).start()
time.sleep(0.5)
print("done")
"""
    for _ in range(3):
        done = _in_process(code)
        assert (done.returncode, done.stdout.strip()) == (0, "done"), done.stderr


def test_a_long_segment_ends_soon_after_its_time_and_names_the_layer() -> None:
    compiled = irexec.compile_model(network(30, 128, 256), threads=2)  # About a second.
    start = time.perf_counter()
    with pytest.raises(irexec.RunTimeoutError, match=r"longer than 0\.1 s and was stopped at layer '(conv|relu)\d+'"):
        compiled.run(inputs(128, 256), timeout=0.1)
    assert time.perf_counter() - start < 2
    # It can be used again.
    small = irexec.compile_model(network(), threads=2)
    np.testing.assert_array_equal(small(inputs())[0], small(inputs())[0])


def test_a_model_that_was_stopped_gives_the_same_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    for threads in (1, 2):
        compiled = irexec.compile_model(network(6, 48), threads=threads)
        expected = compiled(inputs(48))[0]
        with monkeypatch.context() as patch:
            patch.setattr("irexec.backend.calls.LOOK", 0)
            np.testing.assert_array_equal(compiled(inputs(48))[0], expected)
            stopped = 0
            for timeout in (1e-4, 5e-4, 1e-3, 2e-3, 4e-3):
                try:
                    compiled.run(inputs(48), timeout=timeout)
                except irexec.RunTimeoutError:
                    stopped += 1
            assert stopped
        np.testing.assert_array_equal(compiled(inputs(48))[0], expected)


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
def test_ctrl_c_ends_a_long_segment() -> None:
    """The handler runs between two parts of a call.

    In a process of its own: Python drops an exception that a signal raises in a callback of the garbage collector, which
    takes long beside the objects of all tests.
    """
    done = _in_process("""
import signal, threading, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # A shell lets what runs in the background ignore it.
compiled, given = irexec.compile_model(network(30, 128, 256), threads=2), inputs(128, 256)
start = time.perf_counter()
compiled(given)
whole = time.perf_counter() - start
main, sent = threading.get_ident(), [0.0]
def interrupt():
    time.sleep(0.1)
    sent[0] = time.perf_counter()
    signal.pthread_kill(main, signal.SIGINT)
threading.Thread(target=interrupt).start()
try:
    compiled(given)
    print("not interrupted")
except KeyboardInterrupt:
    after = time.perf_counter() - sent[0]
    print(f"{after:.2f} s after the signal, of a run of {whole:.2f} s" if after > whole / 4 else "interrupted")
""")
    assert done.stdout.strip() == "interrupted", done.stdout + done.stderr


def test_only_plans_that_call_numpy_set_its_state_for_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    entered: list[str] = []

    def recorded(name: str, context: Any) -> Any:
        return lambda: entered.append(name) or context()

    monkeypatch.setattr("irexec.runtime.session.one_blas_thread", recorded("blas", session.one_blas_thread))
    monkeypatch.setattr("irexec.runtime.execute.set_for_run", recorded("ufuncs", execute.set_for_run))
    for native, expected in ((True, []), (False, ["blas", "ufuncs"])):
        compiled = irexec.compile_model(network(), native=native)
        entered.clear()
        compiled(inputs())
        assert entered == expected


def test_steps_after_a_reference_kernel_are_bound_once(monkeypatch: pytest.MonkeyPatch) -> None:
    x = opset.parameter([3, 8], "f32", "x")
    sums = opset.cum_sum(x, 1)
    shaped = opset.reshape(sums, [2, 12], special_zero=False)
    model = irexec.Model([opset.tanh(shaped) * 2, opset.softmax(sums, axis=1)], [x])
    compiled = irexec.compile_model(model, threads=1)
    assert "reference" in str(compiled.plan)
    bound, bind = [], NativeKernel.bound
    monkeypatch.setattr(NativeKernel, "bound", lambda self, *given: bound.append(self) or bind(self, *given))
    counts = []
    for seed in range(3):
        given = np.random.default_rng(seed).standard_normal((3, 8), np.float32)
        doubled, shares = compiled([given]).values()
        expected = np.cumsum(given.astype(np.float64), 1)
        np.testing.assert_allclose(doubled, 2 * np.tanh(expected).reshape(2, 12), rtol=1e-5)
        np.testing.assert_allclose(shares, np.exp(expected) / np.exp(expected).sum(1, keepdims=True), rtol=1e-5)
        counts.append(len(bound))
    assert counts[0] == counts[2] == 2
