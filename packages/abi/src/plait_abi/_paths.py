"""The folders of headers and libraries, for C and C++ programs and for builds."""

from __future__ import annotations

import importlib.util
import pathlib


def paths(package: str = "plait_abi") -> dict[str, str]:
    """Return the folders and files of a package that C and C++ programs need.

    Args:
        package: import name of an installed package or plug-in; it isn't imported.

    Returns:
        ``include`` (header folder), ``lib`` (folder of its shared libraries), ``pkgconfig``, each
        only where the package has one, and ``lib<name>.so`` for every library in ``lib``.

    Raises:
        ModuleNotFoundError: if there is no such package.

    Example:
        >>> from plait_abi import paths
        >>> sorted(paths())[:2]
        ['include', 'lib']
    """
    spec = importlib.util.find_spec(package)
    folders = list(spec.submodule_search_locations or []) if spec else []
    if not folders:
        raise ModuleNotFoundError(
            f"paths: an installed package is required, got {package!r}", name=package
        )
    root = pathlib.Path(folders[0]).resolve()
    results = {
        name: str(root / name) for name in ("include", "lib", "pkgconfig") if (root / name).is_dir()
    }
    results.update({path.name: str(path) for path in sorted((root / "lib").glob("lib*.so"))})
    return results
