"""Element types in shape rules: what several inputs share."""

from __future__ import annotations

from irexec.dtypes.elements import Element
from irexec.errors import check
from irexec.ir.facts import Fact


def unify_elements(*facts: Fact) -> Element | None:
    """The element type that inputs share; None if it is not known of any of them.

    Raises:
        OpError: two of them differ.
    """
    found: Element | None = None
    for fact in facts:
        if fact.element is None:
            continue
        check(found is None or fact.element is found, f"element types {found} and {fact.element} differ")
        found = fact.element
    return found
