"""Install both releases of Inference Engine: python -m tests.legacy_sweep.install FOLDER --python python3.7"""

from __future__ import annotations

import argparse
import subprocess
from pathlib import Path

from irexec.tools.engines.inference_engine import RELEASES, VARIABLE


def main() -> None:
    """Make a virtual environment for each release."""
    parser = argparse.ArgumentParser(description="install Inference Engine 2020.1 and 2020.4")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--python", default="python3.7", help="an interpreter of Python 3.7 (3.6 has wheels too)")
    arguments = parser.parse_args()
    for release, version in RELEASES.items():
        environment = arguments.folder / release
        subprocess.run([arguments.python, "-m", "venv", str(environment)], check=True)
        python = str(environment / "bin" / "python")
        packages = ["numpy", f"opencv-python-inference-engine=={version}"]
        subprocess.run([python, "-m", "pip", "install", "-q", *packages], check=True)
    print(f"export {VARIABLE}={arguments.folder.absolute()}")


if __name__ == "__main__":
    main()
