"""The drawing of the graph in a report."""

from __future__ import annotations

from irexec.display import Content
from irexec.tools.graph import draw, graph_fragment
from irexec.tools.report.contents import Contents


def graph_of(found: Contents, is_wanted: bool) -> Content:
    """The drawing; None, with a note, unless it is wanted."""
    if not is_wanted:
        found.notes.append("graph: switched off")
        return None
    if not found.nodes:
        return None
    profile = None if found.measured is None else found.measured.profile
    return found.attempt(
        "graph",
        lambda: graph_fragment(
            draw(
                found.model,
                cluster=None,
                findings=found.findings,
                profile=profile,
                inference=found.inference,
            ),
            id="drawing",
        ),
    )
