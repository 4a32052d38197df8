"""Writing a model in the operations of an older release of OpenVINO.

A rewrite replaces one version of an operation by older operations that compute the same. The table of rewrites is in
irexec.authoring.downgrade.layer, and the modules of families fill it.
"""

from irexec.authoring.downgrade import activations, degenerate, element_types, movement, spellings  # noqa: F401 - they fill the table
from irexec.authoring.downgrade.writing import Change, Downgraded, downgrade

__all__ = ["Change", "Downgraded", "downgrade"]
