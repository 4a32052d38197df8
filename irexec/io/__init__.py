"""Reading and writing IR: syntax alone, no operation is known here."""

from irexec.io.reader import read, read_text
from irexec.io.writer import write, write_text

__all__ = ["read", "read_text", "write", "write_text"]
