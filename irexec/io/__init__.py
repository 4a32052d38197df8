"""Reading and writing IR: syntax alone, no operation is known here."""

from irexec.io.payload import plain
from irexec.io.reader import read, read_text
from irexec.io.sources import ModelSource, WeightsSource
from irexec.io.writer import write, write_text

__all__ = ["ModelSource", "WeightsSource", "plain", "read", "read_text", "write", "write_text"]
