"""Datasets and loaders as HTML for notebooks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from plait_data import (
    ChainDataset,
    ConcatDataset,
    DataLoader,
    Dataset,
    IterableDataset,
    Subset,
    TensorDataset,
)


def facts(of: Any) -> dict[str, str]:
    rows = re.findall(r"<th[^>]*>(.*?)</th><td[^>]*>(.*?)</td>", of._repr_html_())
    return dict(rows)


class Unread(Dataset[int]):
    """Has samples that must not be read to be shown."""

    def __getitem__(self, index: int) -> int:
        raise AssertionError("a sample was read")

    def __len__(self) -> int:
        return 7


class Stream(IterableDataset[int]):
    def __iter__(self) -> Iterator[int]:
        raise AssertionError("a sample was read")


def test_datasets() -> None:
    arrays = TensorDataset(np.zeros((5, 2), np.float32), [1, 2, 3, 4, 5])
    assert facts(arrays) == {
        "samples": "5",
        "tensors[0]": "ndarray, shape (5, 2), float32",
        "tensors[1]": "list, 5 elements",
    }
    assert facts(Unread()) == {"samples": "7"}
    assert Unread()._repr_html_().startswith("<div>Unread<table>")
    assert facts(ConcatDataset([Unread(), [1]]))["datasets[0]"] == "Unread, 7 samples"
    assert facts(Subset(Unread(), [1, 2])) == {"samples": "2", "of": "Unread, 7 samples"}
    assert facts(Stream()) == {"samples": "not known"}
    assert facts(ChainDataset([Stream()])) == {"datasets[0]": "Stream, number of samples not known"}


def test_the_iterator_of_a_chain_is_not_used_up() -> None:
    chain = ChainDataset(iter([Stream()]))
    assert facts(chain) == {}
    assert len(list(chain.datasets)) == 1


def test_loaders() -> None:
    assert facts(DataLoader(Unread(), batch_size=2, shuffle=True)) == {
        "dataset": "Unread, 7 samples",
        "order": "RandomSampler",
        "batch size": "2",
        "batches": "4",
        "workers": "none",
    }
    stream = facts(DataLoader(Stream(), batch_size=None, num_workers=2))
    assert stream["batches"] == "not known" and stream["order"] == "as they come"
    assert stream["batch size"] == "single samples" and stream["workers"] == "2 (processes)"
    threads = DataLoader(Unread(), num_workers=1, multiprocessing_context="thread")
    assert facts(threads)["workers"] == "1 (threads)"
    choice = DataLoader(Unread(), batch_sampler=[[0, 1], [2]])
    assert facts(choice)["batch size"] == "batches of the sampler"
    assert facts(choice)["order"] == "list" and facts(choice)["batches"] == "2"


def test_a_text_of_its_own_is_preferred() -> None:
    @dataclass
    class Squares(Dataset[int]):
        size: int

        def __len__(self) -> int:
            return self.size

    assert Squares(3)._repr_html_() is None
