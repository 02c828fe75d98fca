"""Write bindings of plait for another language.

    python tools/bindings model                 the model as JSON, to the standard output
    python tools/bindings rust FOLDER           the sources that the crate bindings/rust includes
    python tools/bindings node FOLDER           those that the package bindings/node includes
    python tools/bindings libraries | headers   folders, separated by colons

It needs the packages plait-ops, plait-abi and plait-graph installed. docs/guides/languages.md says
how to add a language.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import sys
from collections.abc import Sequence

import model
import node
import rust

__all__ = ["main"]

BACKENDS = {"rust": rust.emit, "node": node.emit}


def write(folder: pathlib.Path, files: dict[str, str]) -> None:
    """Write files, and leave those alone that have their text already."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        path = folder / name
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


def main(arguments: Sequence[str]) -> int:
    """Write what is asked for."""
    parser = argparse.ArgumentParser("tools/bindings")
    parser.add_argument("what", choices=["model", "libraries", "headers", *BACKENDS])
    parser.add_argument("folder", nargs="?", type=pathlib.Path)
    flags = parser.parse_args(arguments)
    if flags.what == "libraries":
        print(":".join(map(str, model.folders())))
    elif flags.what == "headers":
        print(":".join(map(str, model.include_folders())))
    elif flags.what == "model":
        print(json.dumps(model.plain(model.load()), indent=1, ensure_ascii=False))
    elif flags.folder is None:
        parser.error(f"{flags.what}: a folder is required")
    else:
        write(flags.folder, BACKENDS[flags.what](model.load()))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
