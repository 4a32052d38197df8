"""The editor of a model: one method for each step, which the command line says by options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any

from irexec.analysis.model import Model, check_model
from irexec.analysis.open_sizes import frozen_axes
from irexec.authoring import compression, contents, optimizing, preprocessing, surgery, unfreezing
from irexec.authoring.editing import Editing
from irexec.dtypes.elements import ElementLike
from irexec.io.payload import mark_layer
from irexec.ir.order import find_layer
from irexec.ir.shape_text import ShapeLike
from irexec.messages import counted


class Editor:
    """Changes a model step by step: ``with model.edit() as g:`` makes all of the steps in the block or none.

    Each step is checked when it is made: after an error the model is as it was before the step, and an error that
    leaves the block takes back all steps of the block. Layers are named by their name or id, those of bodies by a path
    such as ``loop/body/add``; tensors by a tensor name, or a layer's name or id, with ``:N`` for one of several
    outputs. Facts are inferred again only where a step changes something.

    Args:
        model: the model, which is changed in place; its layers stay the same objects.

    Raises:
        ModelError: the model is damaged, so that it could not be written.
    """

    def __init__(self, model: Model) -> None:
        check_model(model)
        self._editing = Editing(model)
        self._entered = 0

    def __enter__(self) -> Editor:
        self._entered = len(self._editing.made)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self.undo(len(self._editing.made) - self._entered)

    def __repr__(self) -> str:
        return f"<Editor of {self.model!r}: {counted(len(self._editing.made), 'step')}>"

    @property
    def model(self) -> Model:
        """The model."""
        return self._editing.model

    @property
    def steps(self) -> list[str]:
        """The steps so far, each in a few words."""
        return [made.text for made in self._editing.made]

    @property
    def notes(self) -> list[str]:
        """Sentences about the model after the steps so far: what a step left as it was."""
        return [note for made in self._editing.made for note in made.notes]

    def undo(self, steps: int = 1) -> None:
        """Take back the last steps, with every other change of the model since; also after the block.

        Raises:
            OpError: fewer steps have been made.
        """
        self._editing.undo(steps)

    def rename(self, old: str, new: str) -> None:
        r"""Rename every layer and tensor of a name: an input or output often has a layer and a tensor of one name.

        Args:
            old: a name; or a pattern with ``*`` and ``?``, whose texts replace the asterisks of ``new`` in order; or
                ``re:`` and a regular expression, with ``\1`` and so on in ``new``. Patterns change names in bodies,
                too.
            new: the new name.

        Raises:
            InputError: no name is changed, or two layers or two tensors would have the same name.
        """
        with self._editing.step(f"rename {old} to {new}"):
            contents.rename(self._editing, old, new)

    def cut_from(self, *tensors: str) -> None:
        """Make tensors inputs of the model. What only they depended on is left out, inputs that nothing reads too.

        Raises:
            InputError: the tensor does not exist, its element type is not known, or it is an input already.
        """
        with self._editing.step(f"cut from {', '.join(tensors)}"):
            surgery.cut_from(self._editing, tensors)

    def cut_to(self, *tensors: str) -> None:
        """Make tensors the only outputs of the model, in this order. What they do not depend on is left out.

        Raises:
            InputError: the tensor does not exist.
        """
        with self._editing.step(f"cut to {', '.join(tensors)}"):
            surgery.cut_to(self._editing, tensors)

    def add_output(self, tensor: str, name: str | None = None) -> None:
        """Make a tensor a further output of the model.

        Args:
            tensor: the tensor.
            name: a new tensor name for it.

        Raises:
            InputError: the tensor does not exist, it is an output already, or another tensor has the name.
        """
        with self._editing.step(f"add output {tensor}"):
            surgery.add_output(self._editing, tensor, name)

    def reshape(self, shapes: Mapping[Any, ShapeLike] | ShapeLike) -> None:
        """Give inputs other shapes, as ``Model.reshape`` does. ``notes`` names open axes that take one size only.

        Raises:
            InputError: the input does not exist, or what is given is not a shape.
            NodeError: the model cannot take the shapes.
        """
        with self._editing.step("reshape") as notes:
            contents.reshape(self._editing, shapes)
            notes += map(str, frozen_axes(self.model))

    def set_batch(self, size: int | str | None) -> None:
        """Set the batch size of every input: the axis N of its layout, or else the first axis; notes as of ``reshape``.

        Args:
            size: an int, None or "?" for any, or bounds such as "1..8".

        Raises:
            InputError: no input has a batch axis.
            NodeError: the model cannot take the size.
        """
        with self._editing.step(f"batch {'?' if size is None else size}") as notes:
            contents.set_batch(self._editing, size)
            notes += map(str, frozen_axes(self.model))

    def set_attribute(self, layer: str, name: str, value: Any) -> None:
        """Set an attribute of a layer.

        Args:
            layer: the layer.
            name: as IR writes it, such as "strides" or "exclude-pad".
            value: a value, or its text as IR writes it.

        Raises:
            InputError: the layer or attribute does not exist.
            NodeError: the layer, or one after it, cannot be inferred with the value.
        """
        with self._editing.step(f"set {layer}.{name}"):
            contents.set_attribute(self._editing, layer, name, value)

    def set_constant(self, layer: str, array: Any, element: ElementLike | None = None) -> None:
        """Replace the contents of a Constant.

        Args:
            layer: the Constant.
            array: the new values, of any shape that the layers after it take.
            element: the element type; that of the old contents unless given.

        Raises:
            InputError: the Constant does not exist, or integers of its type cannot represent the values.
            NodeError: a layer cannot take the constant.
        """
        with self._editing.step(f"constant {layer}"):
            contents.set_constant(self._editing, layer, array, element)

    def remove(self, layer: str, through: int | None = None) -> None:
        """Take a layer out: its readers read the one of its inputs that has the type and shape of its output.

        Args:
            layer: a layer whose output is that of one input; or a Result, or a layer that nothing reads.
            through: index of the input, where several fit.

        Raises:
            InputError: the layer does not exist, no input fits, or several do.
        """
        with self._editing.step(f"remove {layer}"):
            surgery.remove(self._editing, layer, through)

    def set_rt_info(self, path: str | Sequence[str], value: object) -> None:
        """Set an entry of the model's rt_info.

        Args:
            path: the names that lead to it, such as "model_info/model_type" or ["model_info", "model_type"].
            value: the value, which is written as text.

        Raises:
            InputError: XML cannot contain a name or the value, or an entry on the path has a value.
        """
        with self._editing.step(f"rt_info {path}"):
            contents.set_rt_info(self._editing, path, value)

    def insert_after(self, tensor: str, function: surgery.Function) -> None:
        """Insert a function between a tensor and its readers: ``g.insert_after("conv1", irexec.opset.relu)``.

        Args:
            tensor: the tensor. An output of the model keeps its names.
            function: a function of an ``irexec.Tensor`` that returns one.

        Raises:
            InputError: the tensor does not exist, or the function returns something else.
            NodeError: a reader cannot take the new tensor.
        """
        with self._editing.step(f"insert after {tensor}"):
            surgery.insert_after(self._editing, tensor, function)

    def replace(self, layer: str, replacement: surgery.Function | Model) -> None:
        """Put a function or a model in the place of a layer, whose name and tensor names it gets.

        Args:
            layer: a layer outside of bodies.
            replacement: a function of as many tensors as the layer has inputs, which returns as many as are read; or a
                model, whose inputs are the first inputs of the layer, and whose layers are copied.

        Raises:
            InputError: the layer does not exist, or the replacement has too many inputs or too few outputs.
            NodeError: a layer cannot take its inputs.
        """
        with self._editing.step(f"replace {layer}"):
            surgery.replace(self._editing, layer, replacement)

    def embed_preprocessing(
        self,
        input: str | int,
        *,
        element: ElementLike | None = None,
        size: tuple[int | None, int | None] = (None, None),
        resize: preprocessing.ResizeMode | None = None,
        reverse_channels: bool = False,
        mean: float | Sequence[float] | None = None,
        scale: float | Sequence[float] | None = None,
        layout: str | None = None,
        model_layout: str | None = None,
    ) -> None:
        """Compute the preprocessing of an input in the model, in the order of the arguments.

        Args:
            input: a name or position.
            element: the element type in which the input will be given, such as "u8".
            size: height and width in which images will be given, where they are resized; None is any.
            resize: resize images to the size that the model has: "linear", "cubic" or "nearest".
            reverse_channels: reverse the order of the channels, as for BGR images and a model of RGB.
            mean: subtract this: one number, or one for each channel in the order of the model.
            scale: divide by this, as ``mean``.
            layout: the layout in which the input will be given, such as "NHWC".
            model_layout: the layout of the model; unless given the one that the input declares, or else channels are
                the axis of 1, 3 or 4.

        Raises:
            InputError: the input does not exist, or its type, shape or layout does not allow a step.
        """
        wanted = preprocessing.Preprocessing(
            element=element, size=size, resize=resize, reverse_channels=reverse_channels, mean=mean, scale=scale,
            layout=layout, model_layout=model_layout,
        )  # fmt: skip
        with self._editing.step(f"preprocessing of {input}"):
            preprocessing.embed_preprocessing(self._editing, input, wanted)

    def set_element(self, port: str, element: ElementLike) -> None:
        """Give an input or output of the model another element type, by a Convert.

        Raises:
            InputError: the input or output does not exist.
        """
        with self._editing.step(f"element {port}"):
            preprocessing.set_element(self._editing, port, element)

    def append(self, kind: str, output: str | int | None = None, **options: Any) -> None:
        """Compute postprocessing of an output in the model. The first result takes its place and its names.

        Args:
            kind: "softmax" and "sigmoid"; "argmax": the index of the first maximum; "topk": the ``k`` largest values,
                and their indices as a further output; "nms": further outputs with the boxes that are kept, of the
                outputs that ``boxes`` and ``scores`` name.
            output: a name or position; the only output unless given.
            options: ``axis`` of the classes (the last, or axis 1 of images, unless given), ``k`` (5), and for nms
                ``iou`` (0.5), ``score`` (0), ``max`` (100) and ``center``.

        Raises:
            InputError: the kind, output or option does not exist.
            NodeError: the output does not fit.
        """
        with self._editing.step(f"append {kind}"):
            preprocessing.append(self._editing, kind, output, options)

    def compress(self, mode: str, *, group: int | None = None, keep: Sequence[str] = ()) -> None:
        """Store weights in fewer bits: each becomes a constant and the layers that compute the weights of it.

        Args:
            mode: "f16"; "int8": u8 with a scale and a zero point for each channel; "int8_sym": i8 with a scale.
                "int4", "int4_asym", "nf4", "cb4", "fp4", "mxfp4", "fp8_e4m3", "mxfp8_e4m3": weights of products in
                groups with a scale, all but the last product; everything else, and a product that groups do not divide,
                as "int8".
                Numbers are those of NNCF's data-free modes.
            group: number of weights that share a scale; by default 128, and 32 for mxfp4 and mxfp8_e4m3.
            keep: layers whose weights stay as they are.

        ``notes`` has the bytes before and after, the number of weights in each mode, and products that groups do not
        divide.

        Raises:
            InputError: the mode or layer does not exist, or there is nothing to compress.
        """
        with self._editing.step(f"compress {mode}") as notes:
            kept = [find_layer(self.model, name)[1] for name in keep]
            notes += compression.compress(self._editing, mode, group, kept)
            for layer in compression.refused(self.model):
                notes.append(f"OpenVINO 2026.4 does not compile the model with these weights: --keep {layer.name}")

    def precise(self, layer: str) -> None:
        """Let a layer be computed in f32 on devices that compute in f16, by OpenVINO's attribute ``precise``.

        Raises:
            InputError: the layer does not exist.
        """
        with self._editing.step(f"precise {layer}"):
            mark_layer(find_layer(self.model, layer)[1], "precise")

    def decompress(self) -> None:
        """Compute weights that are stored in fewer bits, and store them in the element type in which they are used.

        Raises:
            InputError: the model has no such weights.
        """
        with self._editing.step("decompress"):
            optimizing.decompress(self._editing)

    def fake_quantize(self) -> None:
        """Replace each QuantizeLinear with its DequantizeLinear, as the converter writes them, by a FakeQuantize.

        OpenVINO computes products in integers where a FakeQuantize makes their data, and in f32 where primitives do. A
        value halfway between two levels may get the other one, where the zero point is odd. ``notes`` has the number.

        Raises:
            InputError: the model has none of 8 bits with one range.
            NodeError, UnsupportedError: a layer cannot be inferred or is not known.
        """
        with self._editing.step("fake-quantize") as notes:
            notes.append(optimizing.fake_quantize(self._editing))

    def fold(self) -> None:
        """Replace layers that depend on constants alone, and values that the shapes decide, by constants.

        Weights stay compressed, and so does a result that is 1 MiB larger than what it is computed from.
        """
        with self._editing.step("fold"):
            optimizing.fold(self._editing)

    def optimize(self) -> None:
        """Rewrite layers outside of bodies so that fewer remain, with the same results bit by bit.

        No-ops are left out, equal layers are merged, and a Transpose or Reshape becomes one with another one before it,
        or with a MatMul after it.

        Raises:
            NodeError, UnsupportedError: a layer cannot be inferred or is not known.
        """
        with self._editing.step("optimize"):
            optimizing.optimize(self._editing)

    def unfreeze(self, input: str | int | Sequence[str | int], axis: int | None = None) -> None:
        """Let an axis of inputs have any size, where constants allow only one.

        The constant pattern of a Reshape gets 0, -1 or the size that a ShapeOf returns; that of a Broadcast the size. A
        constant whose slices along the axis are equal, such as an initial state, becomes one slice that is repeated as
        often as the size is. The shape of the inputs stays as it is: ``reshape`` or ``set_batch`` may change it
        afterwards. ``notes`` names layers that keep their shapes, such as an Interpolate to a constant size.

        Args:
            input: a name or position; or several, which take the same size.
            axis: the axis; that of the batch unless given.

        Raises:
            InputError: the input or axis does not exist, or nothing blocks it.
            NodeError: a layer blocks it that cannot be repaired.
        """
        keys = [input] if isinstance(input, str | int) else list(input)
        with self._editing.step(f"unfreeze {', '.join(map(str, keys))}") as notes:
            notes += unfreezing.unfreeze(self._editing, keys, axis)
