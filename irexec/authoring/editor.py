"""The editor of a model: one method for each step, which the command line says by options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any

from irexec.analysis.model import Model, Port, check_model
from irexec.authoring import contents, cutting, layers, metadata, naming
from irexec.authoring.editing import Editing
from irexec.dtypes.elements import ElementLike
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
            naming.rename(self._editing, old, new)

    def cut_from(self, *tensors: str) -> None:
        """Make tensors inputs of the model. What only they depended on is left out, inputs that nothing reads too.

        Raises:
            InputError: there is no such tensor, its element type is not known, or it is an input already.
        """
        with self._editing.step(f"cut from {', '.join(tensors)}"):
            cutting.cut_from(self._editing, tensors)

    def cut_to(self, *tensors: str) -> None:
        """Make tensors the only outputs of the model, in this order. What they do not depend on is left out.

        Raises:
            InputError: there is no such tensor.
        """
        with self._editing.step(f"cut to {', '.join(tensors)}"):
            cutting.cut_to(self._editing, tensors)

    def add_output(self, tensor: str, name: str | None = None) -> None:
        """Make a tensor a further output of the model.

        Args:
            tensor: the tensor.
            name: a new tensor name for it.

        Raises:
            InputError: there is no such tensor, it is an output already, or another tensor has the name.
        """
        with self._editing.step(f"add output {tensor}"):
            cutting.add_output(self._editing, tensor, name)

    def reshape(self, shapes: Mapping[str | int, ShapeLike] | Mapping[Port, ShapeLike] | ShapeLike) -> None:
        """Give inputs other shapes, as ``Model.reshape`` does.

        Raises:
            InputError: there is no such input, or what is given is not a shape.
            NodeError: the model cannot take the shapes.
        """
        with self._editing.step("reshape"):
            contents.reshape(self._editing, shapes)

    def set_batch(self, size: int | str | None) -> None:
        """Set the batch size of every input: the axis N of its layout, or else the first axis.

        Args:
            size: an int, None or "?" for any, or bounds such as "1..8".

        Raises:
            InputError: no input has a batch axis.
            NodeError: the model cannot take the size.
        """
        with self._editing.step(f"batch {'?' if size is None else size}"):
            contents.set_batch(self._editing, size)

    def set_attribute(self, layer: str, name: str, value: Any) -> None:
        """Set an attribute of a layer.

        Args:
            layer: the layer.
            name: as IR writes it, such as "strides" or "exclude-pad".
            value: a value, or its text as IR writes it.

        Raises:
            InputError: there is no such layer or attribute.
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
            InputError: there is no such Constant, or integers of its type cannot represent the values.
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
            InputError: there is no such layer, no input fits, or several do.
        """
        with self._editing.step(f"remove {layer}"):
            layers.remove(self._editing, layer, through)

    def set_rt_info(self, path: str | Sequence[str], value: object) -> None:
        """Set an entry of the model's rt_info.

        Args:
            path: the names that lead to it, such as "model_info/model_type" or ["model_info", "model_type"].
            value: the value, which is written as text.

        Raises:
            InputError: XML cannot contain a name or the value, or an entry on the path has a value.
        """
        with self._editing.step(f"rt_info {path}"):
            metadata.set_rt_info(self._editing, path, value)
