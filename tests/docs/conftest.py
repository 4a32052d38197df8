"""The extension that generates reference pages is importable, as it is for Sphinx."""

import sys

from tests.support.paths import ROOT

sys.path.insert(0, str(ROOT / "docs" / "_extensions"))
