"""Whether the sdist and the wheels in a folder have what they must have, and nothing else.

python .github/package/check_contents.py dist
"""

import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

_PACKAGES = ("irexec", "converters")
_KERNELS = "irexec/native/built/"
_STUB = "irexec/opset.pyi"
"""Written when a wheel is built."""
_TOP = {
    ".ci",
    ".github",
    ".gitignore",
    ".pre-commit-config.yaml",
    ".pre-commit-hooks.yaml",
    "CHANGELOG.md",
    "CITATION.cff",
    "LICENSE",
    "PKG-INFO",
    "README.md",
    "action.yml",
    "converters",
    "docs",
}
_TOP |= {"irexec", "pyproject.toml", "samples", "tests"}


def wheel_problems(names: list[str], sources: set[str]) -> list[str]:
    """What is wrong with the files of a wheel; ``sources`` are those of the packages in the repository."""
    # A wheel that auditwheel repaired has entries of folders too.
    files = {name for name in names if not name.endswith("/")}
    inside = {name for name in files if not name.split("/")[0].endswith(".dist-info")}
    metadata = {name.split("/", 1)[1] for name in files - inside}
    packed = {name for name in inside if not name.startswith(_KERNELS)}
    wanted = {"METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE"}
    return [
        *(f"the wheel lacks {name}" for name in sorted(sources - packed)),
        *(f"the wheel should not have {name}" for name in sorted(packed - sources)),
        *(f"the wheel's metadata lack {name}" for name in sorted(wanted - metadata)),
    ]


def sdist_problems(names: list[str], sources: set[str]) -> list[str]:
    """What is wrong with the files of an sdist."""
    inside = {name.split("/", 1)[1] for name in names if "/" in name}
    return [
        *(f"the sdist lacks {name}" for name in sorted((sources | {"LICENSE", "README.md"}) - inside)),
        *(f"the sdist should not have {name}" for name in sorted({name.split("/")[0] for name in inside} - _TOP)),
    ]


def sources_of(root: Path) -> set[str]:
    """The files of the packages in the repository, and those that pyproject.toml and the hook add to the wheel."""
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))
    added = project["tool"]["hatch"]["build"]["targets"]["wheel"].get("force-include", {})
    files = (path for package in _PACKAGES for path in (root / package).rglob("*") if path.is_file())
    return {path.relative_to(root).as_posix() for path in files if not _is_made(path)} | set(added.values()) | {_STUB}


def _is_made(path: Path) -> bool:
    return "__pycache__" in path.parts or path.parent.as_posix().endswith(_KERNELS.rstrip("/"))


def present(sources: set[str]) -> set[str]:
    """Those of the files that are in the repository under the same name."""
    return {name for name in sources if name != _STUB and (Path(__file__).parents[2] / name).exists()}


def main(folder: Path) -> int:
    """Print what is wrong; the exit code."""
    sources = sources_of(Path(__file__).parents[2])
    problems = []
    for wheel in sorted(folder.glob("*.whl")):
        with zipfile.ZipFile(wheel) as packed:
            problems += [f"{wheel.name}: {problem}" for problem in wheel_problems(packed.namelist(), sources)]
    for sdist in folder.glob("*.tar.gz"):
        with tarfile.open(sdist) as archived:
            # What pyproject.toml adds to the wheel is elsewhere in the sdist.
            problems += sdist_problems([member.name for member in archived if member.isfile()], present(sources))
    print("\n".join(problems) or f"the packages in {folder}: {len(sources)} files of irexec, nothing else")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
