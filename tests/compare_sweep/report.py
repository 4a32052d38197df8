"""What the sweep prints."""

from __future__ import annotations

from tests.compare_sweep.ir import Count


def print_line(name: str, title: str, count: Count, seconds: float) -> None:
    """A line for a network, and one for each change that was not found."""
    later = f"{count.masked} a later one that shows it, {count.pointed} of these with the layer in front"
    figures = f"{count.right:4} right ({count.itself} the layer itself, {later}), {len(count.wrong)} wrong"
    print(f"{name:20} {title:42} {figures}, {count.unseen} not visible, {seconds:.0f} s", flush=True)
    for text in count.wrong:
        print(f"    {text}", flush=True)
