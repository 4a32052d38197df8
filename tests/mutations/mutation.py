"""What a mutation is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutation:
    """A fault: a text of one file that is replaced by another one.

    Attributes:
        name: what is wrong then.
        file: below the root of the source.
        old: occurs exactly once in the file.
        new: the text in its place.
        tests: the arguments of each run of pytest that should fail.
        graphs: random graphs that should show it, at most; 0 for a fault that they do not show.
        unit: elements of a word of the integer products that its code belongs to: 4 on processors with VNNI, 2 on
            others; 0 is both. On other processors nothing runs the code.
    """

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...] = ()
    graphs: int = 0
    unit: int = 0

    @property
    def is_native(self) -> bool:
        """Whether the fault is in the C kernels, which must be built again."""
        return self.file.endswith((".c", ".h"))

    def applied(self, text: str) -> str:
        """The text of the file with the fault.

        Raises:
            ValueError: ``old`` does not occur exactly once.
        """
        count = text.count(self.old)
        if count != 1:
            raise ValueError(
                f"{self.name!r}: the text to be replaced occurs {count} times in {self.file}, expected once"
            )
        return text.replace(self.old, self.new)
