"""``irexec`` and ``python -m irexec``."""

from __future__ import annotations

from irexec.cli.main import main

if __name__ == "__main__":
    main()
