"""Counts of n-grams."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import plait_core as pc
from plait_core import Tensor
from plait_onnx._import._registry import Node, operator

Function = Callable[..., Any]


def _grams(node: Node) -> dict[tuple[int, ...], int]:
    """Return the places of n-grams in the result."""
    pool, places = node.integers("pool_int64s", []), node.integers("ngram_indexes")
    starts = node.integers("ngram_counts")
    if not pool and node.has("pool_strings"):
        raise node.error("pool_strings: tensors of strings cannot be represented")
    if any(not 0 <= i < 1 << 31 for i in places):
        raise node.error("ngram_indexes must not be negative")
    found: dict[tuple[int, ...], int] = {}
    ends = [*starts[1:], len(pool)]
    number = 0
    for n, (start, end) in enumerate(zip(starts, ends, strict=True), 1):
        if not 0 <= start <= end <= len(pool) or (end - start) % n:
            raise node.error("ngram_counts do not fit pool_int64s")
        for i in range(start, end, n):
            if number >= len(places):
                raise node.error(f"there are {len(places)} ngram_indexes for more n-grams")
            found[tuple(pool[i : i + n])] = places[number]
            number += 1
    return found


@operator("TfIdfVectorizer")
def _tf_idf(node: Node) -> Function:
    mode = node.text("mode", choices=("TF", "IDF", "TFIDF"))
    least, most = node.integer("min_gram_length"), node.integer("max_gram_length")
    skips = node.integer("max_skip_count")
    grams, places = _grams(node), node.integers("ngram_indexes")
    weights = np.array(node.numbers("weights", [1.0] * len(places)), np.float32)
    size = max(places, default=-1) + 1
    node.check_size([size])
    if len(weights) != len(places):
        raise node.error(f"{len(weights)} weights for {len(places)} n-grams")
    if not 1 <= least <= most <= 1000 or not 0 <= skips <= 1_000_000:
        raise node.error("gram lengths or max_skip_count are out of range")
    share = np.zeros(size, np.float32)
    share[places] = weights

    def counts(row: list[int]) -> np.ndarray[Any, Any]:
        found = np.zeros(size, np.float32)
        for n in range(least, most + 1):
            for step in range(1, skips + 2) if n > 1 else [1]:
                for i in range(len(row) - (n - 1) * step):
                    place = grams.get(tuple(row[i : i + (n - 1) * step + 1 : step]))
                    if place is not None:
                        found[place] += 1
        return found

    def run(x: Tensor) -> Tensor:
        rows = x.reshape(1, -1) if x.ndim == 1 else x
        node.check_size([rows.shape[0], size], 4)
        found: Any = np.array([counts(row) for row in rows.tolist()], np.float32).reshape(-1, size)
        if mode == "IDF":
            found = (found > 0) * share
        elif mode == "TFIDF":
            found = found * share
        result = pc.from_numpy(found.astype(np.float32)).to(x.device)
        return result.reshape(-1) if x.ndim == 1 else result

    return run
