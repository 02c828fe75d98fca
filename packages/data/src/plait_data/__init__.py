"""Datasets, samplers and the loader that makes batches; it needs NumPy only.

``plait_data`` depends on no tensor library. Samples of NumPy arrays and numbers become NumPy
batches, and samples of another library's tensors become that library's tensors.
`set_batch_converter` makes all batches tensors of one library (the ``plait`` package calls it).

Example:
    >>> import numpy as np
    >>> from plait_data import DataLoader, TensorDataset
    >>> samples = TensorDataset(np.arange(6.0).reshape(3, 2), np.array([0, 1, 2]))
    >>> for x, y in DataLoader(samples, batch_size=2):
    ...     print(x.shape, y)
    (2, 2) [0 1]
    (1, 2) [2]
"""

from plait_data import datasets
from plait_data._dataset import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)
from plait_data._loader import DataLoader
from plait_data._randomness import (
    LibraryDraws,
    manual_seed,
    set_library_draws,
    set_seed_source,
)
from plait_data._sample_seeds import sample_rng
from plait_data._sampler import (
    BatchSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)
from plait_data._worker_info import WorkerError, WorkerInfo, WorkerTimeout, get_worker_info
from plait_data.collate import default_collate, default_convert, set_batch_converter
from plait_data.distributed import DistributedSampler

__all__ = [
    "LibraryDraws",
    "BatchSampler",
    "ChainDataset",
    "ConcatDataset",
    "DataLoader",
    "Dataset",
    "DistributedSampler",
    "IterableDataset",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "StackDataset",
    "Subset",
    "SubsetRandomSampler",
    "TensorDataset",
    "WeightedRandomSampler",
    "WorkerError",
    "WorkerInfo",
    "WorkerTimeout",
    "datasets",
    "default_collate",
    "default_convert",
    "get_worker_info",
    "manual_seed",
    "random_split",
    "sample_rng",
    "set_batch_converter",
    "set_library_draws",
    "set_seed_source",
]
