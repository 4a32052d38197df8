"""Judgement of a runtime: each layer beside its bound."""

from irexec.tools.judge import sections  # noqa: F401 - it registers them
from irexec.tools.judge.judgement import JudgedLayer, Judgement
from irexec.tools.judge.options import JudgeOptions, StepOptions
from irexec.tools.judge.run import judge

__all__ = ["JudgeOptions", "JudgedLayer", "Judgement", "StepOptions", "judge"]
