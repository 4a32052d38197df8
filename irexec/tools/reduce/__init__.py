"""The smallest part of a model that still fails, as a model of its own."""

from irexec.tools.reduce import sections  # noqa: F401 - it registers them
from irexec.tools.reduce.against import OtherModelCheck, RuntimeCheck, check_against
from irexec.tools.reduce.blame import Blame
from irexec.tools.reduce.candidate import Candidate
from irexec.tools.reduce.checks import Check, CommandCheck, Failure, FindingCheck, ValuesCheck
from irexec.tools.reduce.reduction import DoesNotFail, ReduceOptions, Reduction, reduce

__all__ = [
    "Blame", "Candidate", "Check", "CommandCheck", "DoesNotFail", "Failure", "FindingCheck", "OtherModelCheck",
    "ReduceOptions", "Reduction", "RuntimeCheck", "ValuesCheck", "check_against", "reduce",
]  # fmt: skip
