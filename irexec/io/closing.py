"""Objects that are closed at the end of a ``with``."""

from __future__ import annotations

from typing import Self


class Closing:
    """An object that a ``with`` closes."""

    def close(self) -> None:
        """End what the object needs, such as a process or a file."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()
