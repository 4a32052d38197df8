"""The C kernels in a wheel: built for the machine if it has a C compiler, and left out with one line if it has none.

A wheel with the kernels is for one platform and any Python 3, since ctypes loads them. A wheel without the kernels is
for any platform and has their C sources, so that ``python -m irexec.native.build`` builds them later.
"""

import os
import platform
import subprocess
import sys
import sysconfig
from pathlib import Path

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_SOURCE = "irexec/native/source"


def platform_tag() -> str:
    """The wheel's platform; a Python for two processors builds for the one that it runs on."""
    name = sysconfig.get_platform().replace("universal2", platform.machine())
    return name.replace("-", "_").replace(".", "_")


class NativeKernels(BuildHookInterface):
    """Builds irexec/native/built."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict) -> None:
        """Add the built files to the wheel, or the C sources if none could be built."""
        built, reason = self._build()
        if built:
            build_data["pure_python"] = False
            build_data["tag"] = f"py3-none-{platform_tag()}"
            build_data["artifacts"] += [f"/{path}" for path in built]
        else:
            self.app.display_warning(f"irexec is built without C kernels, and computes with NumPy alone: {reason}")
            if version != "editable":
                build_data["force_include"][str(Path(self.root, _SOURCE))] = _SOURCE

    def _build(self) -> tuple[list[str], str]:
        """The built files, relative to the root, or the reason why there are none."""
        # Another process: what it imports must not stay imported in the one that builds the package.
        done = subprocess.run(
            [sys.executable, "-m", "irexec.native.build"],
            cwd=self.root,
            env={**os.environ, "PYTHONPATH": self.root},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
            return [], lines[0].partition("alone: ")[2] or lines[-1]
        return [Path(line).relative_to(Path(self.root).resolve()).as_posix() for line in done.stdout.splitlines()], ""
