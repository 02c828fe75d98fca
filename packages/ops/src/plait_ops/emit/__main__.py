"""``python -m plait_ops.emit [--kernels | --stubs | --pages] <outdir>``"""

from __future__ import annotations

import argparse
import pathlib

from plait_ops import specs
from plait_ops.emit import (
    derivatives,
    facts,
    functions,
    header,
    kernels,
    ops_json,
    pages,
    primitives,
    register,
    stubs,
    words_page,
)


def main() -> None:
    """Write the requested files below the output folder."""
    parser = argparse.ArgumentParser(
        prog="plait_ops.emit", description="Generate files from the operator specs."
    )
    parser.add_argument("outdir", type=pathlib.Path)
    group = parser.add_mutually_exclusive_group()
    group.add_argument(
        "--kernels", action="store_true", help="pointwise kernel units for a kernel library"
    )
    group.add_argument(
        "--stubs", action="store_true", help="text of .pyi files for a Tensor provider"
    )
    group.add_argument("--pages", action="store_true", help="reference pages")
    arguments = parser.parse_args()
    operators = list(specs.all())
    if arguments.kernels:
        files = kernels.emit(operators)
    elif arguments.stubs:
        files = stubs.emit(operators)
    elif arguments.pages:
        files = pages.emit(operators) | derivatives.emit(operators) | words_page.emit()
        files |= facts.emit(operators) | primitives.emit(operators)
    else:
        files = {}
        for emitter in (register.emit, functions.emit, header.emit, ops_json.emit):
            files.update(emitter(operators))
    for name, text in files.items():
        path = arguments.outdir / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
