"""The page in docs/try, as a folder that any server can serve: ``python docs/_extensions/irexec_try.py FOLDER``.

Pyodide comes from its CDN, or with ``--pyodide DISTRIBUTION`` from a copy of that distribution beside the page. Either
way sources.json has the hash of every file, and the browser refuses others.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import io
import json
import shutil
import sys
import zipfile
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).parents[2]
_PAGE = _ROOT / "docs" / "try"
_SAMPLES = ("damaged", "classifier", "denoiser")
_IMAGES = ("digit_7.png", "noisy_3.png")
_CORE = (
    "pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.js", "pyodide.asm.wasm", "python_stdlib.zip", "pyodide-lock.json",
)  # fmt: skip


def write(folder: Path, pyodide: Path | None = None) -> None:
    """Write the page, irexec and the samples.

    Args:
        folder: made if it does not exist.
        pyodide: a distribution of Pyodide with NumPy, which is copied; None for the CDN of docs/try/sources.json.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("index.html", "page.css", "page.js", "worker.js"):
        shutil.copyfile(_PAGE / name, folder / name)
    (folder / "irexec.zip").write_bytes(_package())
    _write_samples(folder / "samples")
    if pyodide is None:
        sources = json.loads((_PAGE / "sources.json").read_text("utf-8"))
    else:
        sources = _copied(pyodide, folder / "pyodide")
    sources["files"]["irexec.zip"] = _entry(folder / "irexec.zip", "irexec.zip")
    (folder / "sources.json").write_text(json.dumps(sources, indent=1), "utf-8")


def _entry(file: Path, url: str) -> dict[str, Any]:
    data = file.read_bytes()
    digest = base64.b64encode(hashlib.sha256(data).digest()).decode()
    return {"url": url, "integrity": f"sha256-{digest}", "bytes": len(data)}


def _copied(pyodide: Path, folder: Path) -> dict[str, Any]:
    """Copy a distribution; its files as sources.json lists them."""
    shutil.copytree(pyodide, folder, dirs_exist_ok=True)
    lock = json.loads((pyodide / "pyodide-lock.json").read_text("utf-8"))
    names = [*_CORE, lock["packages"]["numpy"]["file_name"]]
    files = {name: _entry(folder / name, f"pyodide/{name}") for name in names if (folder / name).exists()}
    return {"base": "pyodide/", "packages": "pyodide/", "onnx": None, "files": files}


def _package() -> bytes:
    """irexec and the converters, not compiled, and the module of the page; the same bytes for the same files."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        files = [file for name in ("irexec", "converters") for file in sorted((_ROOT / name).rglob("*"))]
        for file in files:
            name = file.relative_to(_ROOT).as_posix()
            if file.suffix in (".py", ".css", ".js", ".txt", ".c", ".h") and "__pycache__" not in name:
                archive.writestr(zipfile.ZipInfo(name), file.read_bytes(), zipfile.ZIP_DEFLATED)
        archive.writestr(zipfile.ZipInfo("irexec_page.py"), (_PAGE / "page.py").read_bytes(), zipfile.ZIP_DEFLATED)
    return out.getvalue()


def _write_samples(folder: Path) -> None:
    import irexec

    folder.mkdir(exist_ok=True)
    digits = _ROOT / "samples" / "digits"
    for name in [*(f"{sample}.{suffix}" for sample in _SAMPLES for suffix in ("xml", "bin")), *_IMAGES]:
        shutil.copyfile(digits / name, folder / name)
    # The same network with one convolution padded at the beginning of its axes alone.
    model = irexec.read_model(digits / "classifier.xml")
    with model.edit() as editor:
        editor.set_attribute("conv3/Convolution", "pads_begin", "2,2")
        editor.set_attribute("conv3/Convolution", "pads_end", "0,0")
    irexec.save_model(model, folder / "changed.xml", overwrite=True)


def build_page(app: Any, error: Exception | None) -> None:
    """Write the page beside those of Sphinx."""
    if error is None and app.builder.format == "html":
        write(Path(app.outdir) / "try")


def setup(app: Any) -> dict[str, Any]:
    """Called by Sphinx."""
    app.connect("build-finished", build_page)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Write the page in docs/try as a folder for a server.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--pyodide", type=Path, help="a distribution of Pyodide to copy; default: from its CDN")
    given = parser.parse_args()
    sys.path.insert(0, str(_ROOT))
    write(given.folder, given.pyodide)
