"""Global generators of libraries that are imported in the middle of a sample."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from plait_data._sample_seeds import SEEDED, reseed


class LateSeeds:
    """A module finder that seeds global generators after the import of their library.

    Seeding an index covers what is imported by then; a dataset may import a library, or be the
    first to touch ``numpy.random``, inside of a sample.
    """

    def __init__(self) -> None:
        self._key: tuple[int, Any] = (0, 0)
        sys.meta_path.insert(0, self)

    def reseed(self, seed: int, index: Any) -> None:
        """Seed the imported libraries, and by the same key those imported until the next call."""
        self._key = (seed, index)
        reseed(seed, index)

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The next finder's spec, with a loader that also seeds."""
        if name not in SEEDED:
            return None
        for finder in sys.meta_path:
            if finder is self:
                continue
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                self._seed_after(spec.loader)
                return spec
        return None

    def _seed_after(self, loader: Any) -> None:
        execute: Callable[[ModuleType], None] = loader.exec_module

        def execute_and_seed(module: ModuleType) -> None:
            execute(module)
            reseed(*self._key, (module.__name__,))  # others may be half imported

        try:
            loader.exec_module = execute_and_seed
        except AttributeError:  # a built-in or frozen module: its loader is a class
            return
