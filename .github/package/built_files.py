"""Files of a wheel, and of an editable installation, that are not in the repository.

``irexec/opset.pyi``, the stub of irexec.opset, is written from the operations.

The C kernels are built for the machine if it has a C compiler, and left out with one line if it has none.

A wheel with the kernels is for one platform and any Python 3, since ctypes loads them; one without is for any platform.
Both have the C sources: ``python -m irexec.native.build`` builds them later, and Python reads their structures there.
"""

import os
import platform
import subprocess
import sys
import sysconfig
from pathlib import Path

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_STUB = "irexec/opset.pyi"


def platform_tag() -> str:
    """The wheel's platform; a Python for two processors builds for the one that it runs on."""
    name = sysconfig.get_platform().replace("universal2", platform.machine())
    return name.replace("-", "_").replace(".", "_")


class BuiltFiles(BuildHookInterface):
    """Writes irexec/opset.pyi and builds irexec/native/built."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict) -> None:
        """Add the stub and the kernels to the wheel, where they can be made."""
        done = self._run("irexec.authoring.operations")
        if done.returncode:
            reason = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
            self.app.display_warning(f"irexec is built without {_STUB}, which editors read: {reason}")
        else:
            build_data["artifacts"].append(f"/{_STUB}")
        built, reason = self._build()
        if built:
            build_data["pure_python"] = False
            build_data["tag"] = f"py3-none-{platform_tag()}"
            build_data["artifacts"] += [f"/{path}" for path in built]
        else:
            self.app.display_warning(f"irexec is built without C kernels, and computes with NumPy alone: {reason}")

    def _run(self, module: str) -> subprocess.CompletedProcess:
        """Run a module of irexec, without plug-ins.

        Another process: what it imports must not stay imported in the one that builds the package.
        """
        inherited = {name: value for name, value in os.environ.items() if name != "IREXEC_PLUGINS"}
        # pip finds the packages of an isolated build by PYTHONPATH.
        path = os.pathsep.join(filter(None, (self.root, inherited.get("PYTHONPATH"))))
        return subprocess.run(
            [sys.executable, "-m", module],
            cwd=self.root,
            env={**inherited, "PYTHONPATH": path},
            capture_output=True,
            text=True,
            check=False,
        )

    def _build(self) -> tuple[list[str], str]:
        """The built kernels, relative to the root, or the reason why there are none."""
        done = self._run("irexec.native.build")
        if done.returncode:
            lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
            return [], lines[0].partition("alone: ")[2] or lines[-1]
        return [Path(line).relative_to(Path(self.root).resolve()).as_posix() for line in done.stdout.splitlines()], ""
