"""Build the networks: ``python -m tests.networks.build [names] -o DIR [--wide] [--list]``.

Needs torch, transformers, nncf and openvino, none of which irexec itself needs.
"""

from __future__ import annotations

import argparse
import time
import traceback
from pathlib import Path

from tests.networks import (
    assorted,
    compressed,
    convolutional,
    detection,
    diffusion,
    exported,
    language,
    published,
    recurrent,
    vision,
)
from tests.networks.network import BUILDERS, build

FAMILIES = (convolutional, detection, vision, language, recurrent, diffusion, compressed, assorted, exported, published)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="networks, or beginnings of their names; all unless given")
    parser.add_argument("-o", "--output", type=Path, default=Path("networks"))
    parser.add_argument(
        "--wide", action="store_true", help="published widths and resolutions, with fewer layers where they repeat"
    )
    parser.add_argument("--list", action="store_true")
    arguments = parser.parse_args()
    names = [name for name in BUILDERS if not arguments.names or name.startswith(tuple(arguments.names))]
    for name in names:
        if arguments.list:
            print(name)
            continue
        start = time.perf_counter()
        try:
            path = build(name, arguments.wide, arguments.output)
        except Exception:  # one that cannot be built must not keep the others
            print(f"{name}: cannot be built")
            traceback.print_exc()
            continue
        print(
            f"{name}: {path.with_suffix('.bin').stat().st_size / 1000:.0f} kB, {time.perf_counter() - start:.1f} s",
            flush=True,
        )


if __name__ == "__main__":
    main()
