"""Tables of rows, each of which goes through every law."""

from typing import Any

from irexec.testing import Case, FactsCase, Refusal, case, facts_case, refuses


class Operation:
    """The rows of one operation: ``relu = Operation("Relu", 1)``, then ``relu(x, id="x")`` for ``case("Relu", 1, x, id="x")``.

    Args:
        type, since: as for ``case``.
        attributes: those of every row that has no other value for them.
    """

    def __init__(self, type: str, since: int | str, **attributes: Any) -> None:
        self._of, self._attributes = (type, since), attributes

    def __call__(self, *inputs: Any, **keywords: Any) -> Case:
        """A row of ``case``."""
        return case(*self._of, *inputs, **(self._attributes | keywords))

    def facts(self, *inputs: Any, **keywords: Any) -> FactsCase:
        """A row of ``facts_case``."""
        return facts_case(*self._of, *inputs, **(self._attributes | keywords))

    def refuses(self, *inputs: Any, **keywords: Any) -> Refusal:
        """A row of ``refuses``."""
        return refuses(*self._of, *inputs, **(self._attributes | keywords))
