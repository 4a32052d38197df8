"""Drawings of files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from irexec.analysis.validate import infer_all, validate
from irexec.messages import counted
from irexec.tools.graph.draw import draw
from irexec.tools.graph.drawing import Drawing
from irexec.tools.images.files import Notify
from irexec.tools.measure.profile import ProfileOptions, profile
from irexec.tools.run.input_sources import InputSource
from irexec.tools.run.shapes import read_with_shapes, reshape


@dataclass(frozen=True, kw_only=True)
class GraphOptions(ProfileOptions):
    """The part of a model to draw, and its marks. Options of a run have an effect only with ``times``.

    Attributes:
        around, hops, from_, to, bodies, cluster: see ``draw``.
        statistics: True for statistics of all constants that can be read.
        findings: True to mark the findings of validation.
        times: True to run the model and mark the time of each layer.
    """

    around: tuple[str, ...] = ()
    hops: int = 3
    from_: tuple[str, ...] = ()
    to: tuple[str, ...] = ()
    bodies: bool = False
    cluster: bool | None = False
    statistics: bool = False
    findings: bool = False
    times: bool = False
    runs: int = 5


def create(
    path: str,
    sources: Sequence[InputSource],
    options: GraphOptions,
    notify: Notify,
    advance: Callable[[int], None] = lambda bytes: None,
) -> Drawing:
    """A drawing of a file.

    Args:
        path: the .xml or .onnx.
        sources: the inputs of a run, for ``options.times``.
        options: the part to draw, and its marks.
        notify: called with notes for the user.
        advance: called with numbers of bytes while constants are read.

    Raises:
        InputError: a layer or input does not exist, or nothing is left to draw.
        ModelError, UnsupportedError: the model cannot be read.
        NodeError: with ``times``, the model cannot be run.
    """
    model = read_with_shapes(path, options.weights, options.shapes or {}, mmap=options.mmap)
    reshape(model, options.shapes or {}, tolerant=True)
    inference = infer_all(model)
    found = validate(model, inference=inference) if options.findings else ()
    measured = profile(path, sources, options, notify) if options.times else None
    unreadable = [node for node in model.walk() if node.constant is not None and not node.constant.is_readable]
    if options.statistics and unreadable:
        notify(f"the values of {counted(len(unreadable), 'constant')} cannot be read")
    return draw(
        model, around=options.around, hops=options.hops, from_=options.from_, to=options.to, bodies=options.bodies,
        cluster=options.cluster,
        statistics=options.statistics, findings=found, profile=measured, inference=inference, advance=advance,
    )  # fmt: skip
