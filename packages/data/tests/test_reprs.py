"""The text of datasets and loaders, and the warning about many workers."""

from __future__ import annotations

import os

import numpy as np
import pytest

from plait_data import DataLoader, Dataset, Subset, TensorDataset


def test_texts_have_sizes() -> None:
    samples = TensorDataset(np.zeros((6, 2), np.float32))
    assert repr(samples) == (
        "<TensorDataset samples: 6; tensors[0]: ndarray, shape (6, 2), float32>"
    )
    assert repr(Subset(samples, [0, 1])) == "<Subset samples: 2; of: TensorDataset, 6 samples>"
    assert repr(DataLoader(samples, 4, shuffle=True)) == (
        "<DataLoader dataset: TensorDataset, 6 samples; order: RandomSampler; batch size: 4; "
        "batches: 2; workers: none>"
    )


def test_a_text_never_fails() -> None:
    class Broken(Dataset[int]):
        def __len__(self) -> int:
            raise RuntimeError("no length")

        def __getitem__(self, index: int) -> int:
            return index

    assert repr(Broken()) == "<Broken samples: not known>"
    assert repr(object.__new__(DataLoader)) == "<DataLoader not initialized>"


@pytest.mark.filterwarnings("default:DataLoader. `num_workers`")
def test_more_workers_than_processors_are_warned_about(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1}, raising=False)
    with pytest.warns(UserWarning, match="3 worker processes in total, more than the 2 processors"):
        DataLoader(range(4), num_workers=3)
    DataLoader(range(4), num_workers=2)
