"""Configuration of Sphinx. Build with ``sphinx-build -j auto -W docs build/docs``."""

from __future__ import annotations

import sys
from pathlib import Path

_DOCS = Path(__file__).parent
# The reference pages are generated from the packages and from the rows in tests.
sys.path[:0] = [str(_DOCS.parent), str(_DOCS / "_extensions")]

import irexec  # noqa: E402

project = "irexec"
author = "the irexec authors"
version = release = irexec.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_click",
    "irexec_reference",
    "irexec_pictures",
    "irexec_sidebar",
    "irexec_try",
]
exclude_patterns = ["_build", "_extensions", "try"]
source_suffix = {".md": "markdown"}
nitpicky = False
# An annotation whose name several classes have as a property is shown without a link.
suppress_warnings = ["ref.python"]

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
napoleon_google_docstring = True
napoleon_numpy_docstring = False
# Attributes are not targets of links: many classes have some called "bytes" or "type", which annotations would lead to.
napoleon_use_ivar = True

html_theme = "furo"
html_title = f"irexec {version}"
html_static_path = ["_static"]
html_css_files = ["irexec.css"]
html_copy_source = False
html_show_copyright = False
html_show_sphinx = False
# "--json" is an option and no dash.
smartquotes = False
pygments_style = "friendly"
