"""``python -m tests.pyodide FOLDER``: FOLDER holds Pyodide's distribution, with NumPy for it; node must be installed.

Packages in pure Python that irexec needs are installed into a temporary folder.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from tests.support.paths import ROOT

_PACKAGES = ("click", "rich", "pytest", "hypothesis")


def main(distribution: str) -> int:
    """Run rows.py and the smoke tests; the exit code, 0 if every row holds and no test fails."""
    here = Path(__file__).parent
    with tempfile.TemporaryDirectory() as packages:
        install = [sys.executable, "-m", "pip", "install", "-q", "--target", packages, *_PACKAGES]
        subprocess.run(install, check=True)
        words = ["node", *map(str, (here / "run.mjs", Path(distribution).resolve(), ROOT, packages))]
        return max(subprocess.run([*words, here / name], check=False).returncode for name in ("rows.py", "smoke.py"))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
