"""``python -m irexec``: the command line where no script was installed or is on the path."""

from __future__ import annotations

from irexec.cli.main import main

if __name__ == "__main__":
    main()
