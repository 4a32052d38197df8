"""irexec as a terminal of 80 columns shows it: ``python -m tests.docs.terminal infer model.xml`` prints what a person would see."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Iterator

_ENVIRONMENT = {"COLUMNS": "80", "LINES": "40", "TERM": "dumb", "PYTHONUTF8": "1"}
_UNSET = ("NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "CI")


class _Screen(io.TextIOWrapper):
    """Text that is asked for as if a person were reading it; errors come between, as on a screen."""

    def isatty(self) -> bool:
        return True


def show(arguments: list[str]) -> tuple[str, int]:
    """The output of one command line, stdout and stderr together, and its exit code."""
    from irexec.cli.main import run

    buffer = io.BytesIO()
    screen = _Screen(buffer, encoding="utf-8", newline="\n", write_through=True)
    errors = io.TextIOWrapper(buffer, encoding="utf-8", newline="\n", write_through=True)
    with terminal(), contextlib.redirect_stdout(screen), contextlib.redirect_stderr(errors):
        code = run(arguments)
    return buffer.getvalue().decode("utf-8"), code


@contextlib.contextmanager
def terminal(**variables: str) -> Iterator[None]:
    """The environment of a plain terminal of 80 columns, with these variables set too."""
    changed = {**_ENVIRONMENT, **variables}
    before = {name: os.environ.get(name) for name in (*changed, *_UNSET)}
    os.environ.update(changed)
    for name in _UNSET:
        os.environ.pop(name, None)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


if __name__ == "__main__":
    text, code = show(sys.argv[1:])
    sys.stdout.buffer.write(text.encode("utf-8"))
    sys.exit(code)
