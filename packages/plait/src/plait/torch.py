# Written by tools/alias_modules.py for tools; programs get the other module itself.
from typing import Any


def __getattr__(name: str) -> Any:
    raise AttributeError(name)
