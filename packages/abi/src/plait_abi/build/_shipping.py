"""Ship the sources of libraries in a wheel, with a record of how they are compiled."""

from __future__ import annotations

import json
import pathlib
import shutil
from collections.abc import Mapping, Sequence

from plait_abi.build._targets import Generate, Library, expand

__all__ = ["ship_sources"]

FOLDER = "sources"
RECORD = "libraries.json"


def ship_sources(
    package: str, libraries: Sequence[Library], headers: Sequence[str] = ()
) -> Generate:
    """Return a step that copies the sources of libraries to ``src/<package>/sources``.

    Other packages compile a selection of them for one program (`plait_graph.bundle`). Beside the
    sources lies ``libraries.json``: for each library its files, flags, header folders and machine,
    as `Library` has them. Generated sources are not copied.

    Args:
        package: the import package that gets the folder.
        libraries: whose sources are copied.
        headers: glob patterns of the headers that they include.

    Example:
        >>> from plait_abi.build import Library, ship_sources
        >>> mine = Library("plait_mine", ["cpp/*.cpp"])
        >>> ship_sources("plait_mine", [mine], ["cpp/*.hpp"]).package_files
        {'sources': 'plait_mine/sources'}
    """
    own = [
        (each, [text for text in each.sources if "{generated}" not in text]) for each in libraries
    ]

    def copy(out: pathlib.Path) -> None:
        root = pathlib.Path.cwd()
        target = out / FOLDER
        record = {}
        files = set(expand(headers, root, out))
        for library, patterns in own:
            sources = expand(patterns, root, out)
            files.update(sources)
            flags = library.flags
            record[library.name] = {
                "sources": [path.relative_to(root).as_posix() for path in sources],
                "flags": dict(flags) if isinstance(flags, Mapping) else {"*": list(flags)},
                "include_dirs": [name for name in library.include_dirs if "{" not in name],
                "machine": library.machine,
            }
        for file in files:
            place = target / file.relative_to(root)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, place)
        text = json.dumps(record, indent=1, sort_keys=True)
        (target / RECORD).write_text(text + "\n", encoding="utf-8")

    inputs = [pattern for _, patterns in own for pattern in patterns]
    return Generate(copy, [*inputs, *headers], package_files={FOLDER: f"{package}/{FOLDER}"})
