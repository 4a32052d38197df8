"""Changes between two models."""

from irexec.tools.diff import patch  # noqa: F401 - it registers sections
from irexec.tools.diff.models import diff
from irexec.tools.diff.result import KINDS, Change, Diff, Following, LayerDiff, LayerRef, ValueChange

__all__ = ["KINDS", "Change", "Diff", "Following", "LayerDiff", "LayerRef", "ValueChange", "diff"]
