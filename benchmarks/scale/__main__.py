"""Steps on many ranks: measure two to eight, check the simulator, write its page.

    python benchmarks/scale measure --provider ucx     as root: hosts are network namespaces
    python benchmarks/scale page                       docs/benchmarks/scale.md and scale.svg

`measure` writes docs/benchmarks/scale.json; `page` needs nothing but that file and matplotlib.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
FOLDER = HERE.parents[1] / "docs" / "benchmarks"
sys.path[:0] = [str(HERE), str(HERE.parent)]

from figures import to_json  # noqa: E402 - found in the folders above
from measure import measure  # noqa: E402
from page import draw, page  # noqa: E402


def main() -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("what", choices=("measure", "page"))
    parser.add_argument("--provider", default="ucx", help="of the messages between hosts")
    flags = parser.parse_args()
    file = FOLDER / "scale.json"
    if flags.what == "measure":
        file.write_text(to_json(measure(flags.provider)))
        return
    measured: dict[str, Any] = json.loads(file.read_text())
    (FOLDER / "scale.md").write_text(page(measured))
    draw(measured, FOLDER / "scale.svg")


if __name__ == "__main__":
    main()
