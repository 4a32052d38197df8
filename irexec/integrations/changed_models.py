"""Changes of the models of a git repository since a commit, as Markdown.

``python -m irexec.integrations.changed_models COMMIT PATH...``; the GitHub Action comments a pull request with it.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from irexec.errors import IrexecError
from irexec.tools.diff import diff
from irexec.tools.diff.patch import markdown

_SUFFIXES = (".xml", ".onnx", ".bin")


def _git(*words: str) -> bytes:
    return subprocess.run(("git", *words), check=True, capture_output=True).stdout


def changed(commit: str, paths: Sequence[str]) -> list[str]:
    """The models below the paths that differ from those of a commit; a changed .bin is that of its .xml."""
    names = _git("diff", "--name-only", "-z", "--no-renames", commit, "--", *paths).decode().split("\0")
    files = [Path(name) for name in names if name.endswith(_SUFFIXES)]
    models = [file.with_suffix(".xml") if file.suffix == ".bin" else file for file in files]
    return list(dict.fromkeys(str(model) for model in models if model.is_file() or model in files))


def report(commit: str, paths: Sequence[str]) -> Iterator[str]:
    """The lines of the report: a heading for each model, and the table of ``irexec diff --format markdown``."""
    for path in changed(commit, paths):
        exists = _git("ls-tree", "--name-only", "-z", commit, "--", path) != b""
        if not exists or not Path(path).is_file():
            yield f"### `{path}`\n\n{'removed' if exists else 'added'}\n"
            continue
        with tempfile.TemporaryDirectory() as folder:
            before = Path(folder, Path(path).name)
            for file in {path, str(Path(path).with_suffix(".bin"))}:
                if _git("ls-tree", "--name-only", "-z", commit, "--", file):
                    Path(folder, Path(file).name).write_bytes(_git("show", f"{commit}:./{file}"))
            try:
                text = markdown(diff(str(before), path))
            except IrexecError as error:
                text = f"### `{path}`\n\ncannot be compared: {error}\n"
            yield text.replace(str(before), f"{commit[:9]}:{path}")


if __name__ == "__main__":
    print("\n".join(report(sys.argv[1], sys.argv[2:])))
