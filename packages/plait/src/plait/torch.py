# Written by tools/alias_modules.py for type checkers; at run time the name is the original module.
from typing import Any


def __getattr__(name: str) -> Any:
    raise AttributeError(name)
