"""Judgements with the files that show them: the smallest model with the verdict, its inputs and their interval."""

from irexec.tools.bundling.bundle import judge_into, write_bundle

__all__ = ["judge_into", "write_bundle"]
