"""`torch.hub`, which runs code from the network: refused."""

from __future__ import annotations

import os
from typing import Any, NoReturn

__all__ = [
    "download_url_to_file",
    "get_dir",
    "help",
    "list",
    "load",
    "load_state_dict_from_url",
    "set_dir",
]

_directory = ""


def _refuse(name: str, way: str) -> NoReturn:
    raise NotImplementedError(f"torch.hub.{name}: plait takes nothing from the network; {way}")


def load(repo_or_dir: Any, model: Any, *args: Any, **kwargs: Any) -> NoReturn:
    """Refuse to fetch and run a repository."""
    _refuse("load", "copy the model's class into the program and `torch.load` its weights")


def load_state_dict_from_url(url: str, *args: Any, **kwargs: Any) -> NoReturn:
    """Refuse to fetch weights."""
    _refuse("load_state_dict_from_url", f"download {url} yourself and `torch.load` the file")


def download_url_to_file(url: str, dst: str, *args: Any, **kwargs: Any) -> NoReturn:
    """Refuse to fetch a file."""
    _refuse("download_url_to_file", f"download {url} yourself, to {dst}")


def list(github: str, *args: Any, **kwargs: Any) -> NoReturn:
    """Refuse to fetch a repository."""
    _refuse("list", "look at the repository")


def help(github: str, model: str, *args: Any, **kwargs: Any) -> NoReturn:
    """Refuse to fetch a repository."""
    _refuse("help", "look at the repository")


def get_dir() -> str:
    """Return the folder of earlier downloads."""
    home = os.environ.get("TORCH_HOME", os.path.join(os.path.expanduser("~"), ".cache", "torch"))
    return _directory or os.path.join(home, "hub")


def set_dir(d: Any) -> None:
    """Set what `get_dir` returns."""
    global _directory
    _directory = os.path.expanduser(str(d))
