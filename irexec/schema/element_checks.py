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


def check_integers(fact: Fact, what: str) -> None:
    """Raise OpError if the element type is known and not an integer type."""
    if fact.element is not None:
        check(fact.element.is_integer, f"{what} has element type {fact.element}, expected an integer type")


def check_float(fact: Fact, what: str) -> None:
    """Raise OpError if the element type is known and not a floating-point type."""
    if fact.element is not None:
        check(fact.element.is_float, f"{what} has element type {fact.element}, expected a floating-point type")


def check_floats(**facts: Fact) -> None:
    """The same of several inputs by their names."""
    for what, fact in facts.items():
        check_float(fact, what)
