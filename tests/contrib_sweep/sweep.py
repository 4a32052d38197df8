"""Random nodes of com.microsoft, beside ONNX Runtime's CPU kernels or the NumPy reference of the case.

A name is an operator. Nodes that ONNX Runtime refuses are counted; irexec must refuse them too or have the reference.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import onnx

import converters
import irexec
from irexec import io
from tests.contrib_sweep import attention, experts, hashes, others, packed, products, recurrence
from tests.contrib_sweep.case import Arrays, ContribCase, Draw, runtime_answer
from tests.sweep.kind import Case, Kind, Outcome, temporary

DRAWS: dict[str, Draw] = {
    **attention.DRAWS,
    **experts.DRAWS,
    **hashes.DRAWS,
    **recurrence.DRAWS,
    **others.DRAWS,
    **packed.DRAWS,
    **products.DRAWS,
}


def drawn(name: str, number: int) -> ContribCase:
    """The case of a number."""
    return DRAWS[name](np.random.default_rng([zlib.crc32(name.encode()), number]))


def digest(case: ContribCase) -> str:
    """What a case asks: an answer is never compared with that to another node."""
    found = hashlib.sha256(case.row.model().SerializeToString())
    for name, array in case.row.feeds.items():
        found.update(name.encode() + array.tobytes())
    return found.hexdigest()[:12]


def expected_of(case: ContribCase) -> Arrays:
    """The results that are right."""
    return case.reference() if case.reference is not None else runtime_answer(case.row)


def difference(case: ContribCase, results: Arrays, expected: Arrays) -> str:
    """The first output that differs by more than the tolerance, in words; "" if none does."""
    for i, (x, y) in enumerate(zip(case.defined(results), case.defined(expected), strict=True)):
        if x.shape != y.shape or x.dtype != y.dtype:
            return f"output {i} is {x.dtype}{list(x.shape)}, expected {y.dtype}{list(y.shape)}"
        left, right = x.astype(np.float64), y.astype(np.float64)
        finite = np.abs(right[np.isfinite(right)])
        loose = case.tolerance * (1 + finite.max(initial=0)) * (20 if x.dtype == np.float16 else 1)
        if not np.allclose(left, right, rtol=0, atol=loose, equal_nan=True):
            return f"output {i} differs: {left.ravel()[:8].round(4)} expected {right.ravel()[:8].round(4)} ({x.shape})"
    return ""


def converted_answer(case: ContribCase) -> tuple[irexec.Model, Arrays]:
    """The converted model, written and read, and its results."""
    model = converters.convert(case.row.model(), warn=lambda text: None)
    read = io.read_text(*io.write_text(model))
    return read, [np.asarray(x) for x in irexec.compile_model(read)(case.row.feeds).values()]


class Sweep(Kind):
    """Operators of com.microsoft."""

    cases = 20
    is_isolated = True

    @classmethod
    def add_options(cls, add: Callable[..., Any]) -> None:
        add("--openvino", action="store_true", help="run the IR in OpenVINO too")

    def names(self) -> list[str]:
        return sorted(DRAWS)

    @contextmanager
    def opened(self, name: str) -> Iterator[Case]:
        """An operator."""
        yield lambda number: self._judged(name, number)

    def _judged(self, name: str, number: int) -> Iterator[Outcome]:
        case = drawn(name, number)
        text = " ".join(onnx.printer.to_text(case.row.model().graph).split())[:700]
        expected: Arrays | None = None
        refusal = ""
        self.asking()
        try:
            expected = expected_of(case)
        except Exception as error:
            # ONNX Runtime raises classes of its own.
            refusal = " ".join(str(error).split())[:300]
        try:
            model, results = converted_answer(case)
        except irexec.IrexecError as error:
            kind = "both refuse" if expected is None else "refused"
            yield Outcome(kind, f"{error}\n{refusal}\n{text}", fails=expected is not None)
            return
        if expected is None:
            yield Outcome("ONNX Runtime refuses", f"{refusal}\n{text}")
            return
        found = [finding for finding in irexec.validate(model) if finding.severity == "error"]
        if found:
            yield Outcome("not valid", f"{found[0]}\n{text}", fails=True)
        why = difference(case, results, expected)
        yield Outcome("differs" if why else "agrees", f"{why}\n{text}", fails=bool(why))
        if self.options.openvino:
            yield from self._in_openvino(case, model, expected, text)

    def _in_openvino(self, case: ContribCase, model: irexec.Model, expected: Arrays, text: str) -> Iterator[Outcome]:
        import openvino

        self.asking()
        with temporary() as folder:
            irexec.save_model(model, folder / "model.xml")
            try:
                exact = {"INFERENCE_PRECISION_HINT": "f32", "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0"}
                compiled = openvino.compile_model(folder / "model.xml", "CPU", exact)
                answer = compiled(case.row.feeds)
                results = [np.array(answer[output]) for output in compiled.outputs]
            except RuntimeError as error:
                yield Outcome("OpenVINO refuses", f"{error}\n{text}", fails=True)
                return
            why = difference(case, results, expected)
            yield Outcome("OpenVINO differs" if why else "OpenVINO agrees", f"{why}\n{text}", fails=bool(why))
