"""A Sphinx extension: pictures that the build makes from real runs.

    ```{picture}
    :alt: nine errors of a damaged model
    $ irexec validate samples/digits/damaged.xml
    ```

The lines are run one after the other in a folder that holds samples/. The last one is shown: its output as a terminal,
the image that it writes to picture.svg, or the page that it writes to page.html. A block of Python is shown as a
notebook shows its last expression. Everything is made in a light and a dark variant, and kept until irexec, the samples
or the lines change. ``:narrow:`` is the number of columns of a second picture, for phones.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.util.docutils import SphinxDirective

from irexec_pictures.architecture import architecture
from irexec_pictures.packages import packages
from irexec_pictures.runs import Picture, Studio

FOLDER = "pictures"


class PictureDirective(SphinxDirective):
    """A picture of what the lines of the directive do."""

    has_content = True
    option_spec: ClassVar[dict[str, Any]] = {
        "alt": directives.unchanged_required,
        "height": directives.nonnegative_int,
        "lines": directives.nonnegative_int,
        "columns": directives.nonnegative_int,
        "narrow": directives.nonnegative_int,
        "caption": directives.unchanged,
    }

    def run(self) -> list[nodes.Node]:
        """The figure as HTML."""
        studio = Studio(Path(self.env.srcdir) / "generated" / FOLDER)
        width, lines = self.options.get("columns", 88), self.options.get("lines", 0)
        found = studio.picture(list(self.content), width, lines)
        narrow = self.options.get("narrow")
        text = _figure(found, self._root(), self.options, "wide" if narrow else "")
        if narrow:
            text += _figure(studio.picture(list(self.content), narrow, lines), self._root(), self.options, "narrow")
        return [nodes.raw("", text, format="html")]

    def _root(self) -> str:
        return "../" * self.env.docname.count("/") + FOLDER


class ArchitectureDirective(SphinxDirective):
    """The packages and who imports whom."""

    def run(self) -> list[nodes.Node]:
        """The figure as HTML."""
        folder = Path(self.env.srcdir) / "generated" / FOLDER
        folder.mkdir(parents=True, exist_ok=True)
        found = Picture("architecture", "diagram", *architecture(folder / "architecture"))
        root = "../" * self.env.docname.count("/") + FOLDER
        alt = "the packages of irexec: each imports those that a line leads to"
        return [nodes.raw("", _figure(found, root, {"alt": alt}), format="html")]


class PackagesDirective(SphinxDirective):
    """The packages, each with the first sentence of its docstring."""

    def run(self) -> list[nodes.Node]:
        """A block of text."""
        text = packages()
        return [nodes.literal_block(text, text, language="text")]


def _figure(picture: Picture, root: str, options: dict[str, Any], screens: str = "") -> str:
    """A picture as HTML; ``screens`` is the class of one that is for wide or narrow screens alone."""
    alt = options.get("alt", picture.name).replace('"', "&quot;")
    caption = options.get("caption", "")
    after = f"<figcaption>{caption}</figcaption>" if caption else ""
    if picture.kind == "page":
        source = f"{root}/{picture.name}.html"
        height = options.get("height", 480)
        frame = f'<iframe src="{source}" title="{alt}" loading="lazy" style="height: {height}px"></iframe>'
        text = f'{caption} <a href="{source}">Open the page</a>'
        return f'<figure class="picture live">{frame}<figcaption>{text}</figcaption></figure>'
    images = "".join(
        f'<a class="only-{theme}" href="{root}/{picture.name}-{theme}.svg"><img '
        f'src="{root}/{picture.name}-{theme}.svg" alt="{alt}" width="{picture.width:.0f}" '
        f'height="{picture.height:.0f}" loading="lazy"></a>'
        for theme in ("light", "dark")
    )
    return f'<figure class="picture {picture.kind} {screens}">{images}{after}</figure>'


def copy_pictures(app: Any, error: Exception | None) -> None:
    """Put the pictures beside the pages."""
    source = Path(app.srcdir) / "generated" / FOLDER
    if error is None and app.builder.format == "html" and source.exists():
        shutil.copytree(source, Path(app.outdir) / FOLDER, dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.json"))


def setup(app: Any) -> dict[str, Any]:
    """Called by Sphinx."""
    app.add_directive("picture", PictureDirective)
    app.add_directive("architecture", ArchitectureDirective)
    app.add_directive("packages", PackagesDirective)
    app.connect("build-finished", copy_pictures)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
