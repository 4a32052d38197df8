"""A model as a Python script that makes it again."""

from irexec.tools.script.writing import Script, script

__all__ = ["Script", "script"]
