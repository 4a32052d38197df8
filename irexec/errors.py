"""The tree of exceptions.

::

    IrexecError
      ModelError          malformed XML or .bin: file, line, layer id and name
        EngineError       another runtime refuses a model, or ends while it runs it
      UnsupportedError    a type, version or element type that is not implemented
      OpError             what a rule or kernel objects to; it does not know where it is
        RangeError        a value of the right type that is outside of what is allowed
        NodeError         the same, with its location: raised where that is known
      PluginError         a plug-in cannot be loaded
      InputError          what the caller passed to a compiled model
      RunTimeoutError     a run took longer than the caller allows; also a TimeoutError
      ConversionError     an ONNX node that has no translation, or a wrong one

A message is one clear sentence with the values in it and no full stop. It may quote names and texts of any file:
whatever they hold, ``str(error)`` is one line without control characters and of a readable length.
"""

from __future__ import annotations

from irexec.messages import sentence


class IrexecError(Exception):
    """Base of every error that irexec raises on purpose."""

    def __init__(self, message: str = "") -> None:
        super().__init__(sentence(message))


class ModelError(IrexecError):
    """A file that is not a readable IR, or a graph that is not a valid one."""


class EngineError(ModelError):
    """Another runtime refuses a model or its inputs, or its process ended while it ran it.

    Attributes:
        engine: the runtime.
        exit_code: with which its process ended, negative for the number of a signal; None where it said what is wrong.
    """

    def __init__(self, message: str, *, engine: str = "", exit_code: int | None = None) -> None:
        super().__init__(message)
        self.engine = engine
        self.exit_code = exit_code


class UnsupportedError(IrexecError):
    """An operation type, version or element type that is not implemented."""


class OpError(IrexecError):
    """An objection of a shape rule or a kernel, with the values but without the location."""


class RangeError(OpError):
    """A value of the right type that is outside of what is allowed."""


class NodeError(OpError):
    """An OpError with its location: the node, its inputs and its attributes.

    Attributes:
        node: the name of the node, with the path of bodies that leads to it.
        reason: the sentence of the OpError this was raised from.
    """

    def __init__(self, message: str, *, node: str = "", reason: str = "") -> None:
        super().__init__(message)
        self.node = node
        self.reason = sentence(reason or message)


class PluginError(IrexecError):
    """A plug-in that cannot be loaded."""


class InputError(IrexecError):
    """A wrong name, shape, type or number of the inputs that the caller passed."""


class RunTimeoutError(IrexecError, TimeoutError):
    """A run took longer than the timeout that the caller set; variables are as they were before it.

    Attributes:
        seconds: the timeout.
        node: the name of the layer that was not begun, with the path of the layers in whose bodies it is.
    """

    def __init__(self, message: str, *, seconds: float = 0.0, node: str = "") -> None:
        super().__init__(message)
        self.seconds = seconds
        self.node = node

    @staticmethod
    def at(node: str, seconds: float) -> RunTimeoutError:
        """The error of a run that was stopped before a layer."""
        return RunTimeoutError(
            f"the run took longer than {seconds:g} s and was stopped at layer {node!r}", seconds=seconds, node=node
        )


class ConversionError(IrexecError):
    """An ONNX model that cannot be converted: node name, domain, operator, opset.

    Attributes:
        unsupported: whether the model is sound, but has operators that cannot be translated, or a package is not
            installed.
    """

    def __init__(self, message: str, *, unsupported: bool = False) -> None:
        super().__init__(message)
        self.unsupported = unsupported


class ConversionWarning(UserWarning):
    """Something in an ONNX model that was read is not as it should be, and does not keep it from being converted."""


def check(condition: bool, message: str) -> None:
    """Raise OpError with ``message`` unless ``condition`` holds."""
    if not condition:
        raise OpError(message)
