"""Judgement of a runtime: each layer beside its bound."""

from irexec.tools.judge.judgement import JudgedLayer, Judgement, JudgeOptions, StepOptions
from irexec.tools.judge.run import judge

__all__ = ["JudgeOptions", "JudgedLayer", "Judgement", "StepOptions", "judge"]
