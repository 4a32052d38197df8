"""The release of a runtime with which the results of a model change."""

from irexec.tools.bisecting.releases import BisectOptions
from irexec.tools.bisecting.result import Bisection, JudgedRelease, ReleaseChange, ReleaseRun
from irexec.tools.bisecting.run import bisect

__all__ = ["BisectOptions", "Bisection", "JudgedRelease", "ReleaseChange", "ReleaseRun", "bisect"]
