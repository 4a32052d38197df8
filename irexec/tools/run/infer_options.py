"""The options of a run of a model."""

from __future__ import annotations

from dataclasses import dataclass, field

from irexec.runtime.weight_packing import WeightsMode
from irexec.tools.images import ImageOptions
from irexec.tools.run.shapes import SessionOptions
from irexec.tools.trapping.options import TrapOptions


@dataclass(frozen=True, kw_only=True)
class InferOptions(SessionOptions):
    """The options of a run.

    Attributes:
        image: how images become inputs, and a result becomes an image.
        compressed: ``weights`` of CompiledModel.
        strict: refuse a model in which validate finds an error.
        tensors: the tensors to return; the Results if empty.
        every_tensor: give every tensor of the graph.
        output: the .npz or .png to write.
        dump_folder: the folder to write every tensor to, the inputs among them.
        save_inputs: the .npz to write the inputs to before the run, by their names.
        steps: number of runs one after the other, with state from step to step. Inputs are those of each step, see
            ``sources_of_step``; what is shown is of the last step. The names of ``output`` and ``save_inputs`` may have
            {} where the number of the step is.
        load_state, save_state: the .npz with the arrays of variables before the first step, and after the last one.
        reference: the .npz or .npy to compare with, within ``rtol`` and ``atol``.
        trap: the conditions that stop the run, and the recording; None without a trap.
        topk: number of classes to rank, along ``class_axis``, with the names in the file ``labels``.
        softmax: whether the scores of classes are softmax of the values.
    """

    image: ImageOptions = field(default_factory=ImageOptions)
    compressed: WeightsMode = "auto"
    strict: bool = False
    tensors: tuple[str, ...] = ()
    every_tensor: bool = False
    output: str | None = None
    dump_folder: str | None = None
    save_inputs: str | None = None
    steps: int | None = None
    load_state: str | None = None
    save_state: str | None = None
    reference: str | None = None
    rtol: float = 1e-4
    atol: float = 1e-5
    trap: TrapOptions | None = None
    topk: int | None = None
    class_axis: int | None = None
    softmax: bool = False
    labels: str | None = None
