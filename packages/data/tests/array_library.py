"""A small tensor library that is not NumPy, to stand for plait, torch and others in tests."""

from __future__ import annotations

from typing import Any

import numpy as np


class Tensor:
    """An array with the minimum that a tensor library offers: DLPack, shape, indexing."""

    def __init__(self, values: Any) -> None:
        self.values = np.asarray(values)

    def __dlpack__(self, **options: Any) -> Any:
        return self.values.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.values.__dlpack_device__()

    @property
    def shape(self) -> tuple[int, ...]:
        return self.values.shape

    @property
    def dtype(self) -> Any:
        return self.values.dtype

    def numpy(self) -> Any:
        return self.values

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, index: Any) -> Tensor:
        return Tensor(self.values[index])


class StandardTensor(Tensor):
    """A tensor whose library is found through the array API standard."""

    def __array_namespace__(self) -> Any:
        return StandardNamespace


class StandardNamespace:
    """Functions named as in the array API standard, and no others."""

    @staticmethod
    def stack(arrays: list[Any], axis: int = 0) -> StandardTensor:
        return StandardTensor(np.stack([a.values for a in arrays], axis))

    @staticmethod
    def asarray(values: Any) -> StandardTensor:
        return StandardTensor(values)

    @staticmethod
    def take(array: StandardTensor, indices: StandardTensor, axis: int = 0) -> StandardTensor:
        assert (indices.values >= 0).all()  # the standard leaves negative ones open
        return StandardTensor(array.values.take(indices.values, axis))


class Generator:
    """A random generator with PyTorch's names."""

    def __init__(self, seed: int) -> None:
        self.manual_seed(seed)

    def manual_seed(self, seed: int) -> None:
        self.seed_ = seed
        self.draws = np.random.default_rng(seed)

    def initial_seed(self) -> int:
        return self.seed_


def stack(tensors: list[Tensor], *, out: Tensor | None = None) -> Tensor:
    if out is not None:
        np.stack([t.values for t in tensors], out=out.values)
        return out
    return type(tensors[0])(np.stack([t.values for t in tensors]))


def from_numpy(array: Any) -> Tensor:
    return Tensor(array)


def index_select(tensor: Tensor, dim: int, index: Tensor) -> Tensor:
    assert (index.values >= 0).all()
    return type(tensor)(tensor.values.take(index.values, dim))


def randint(low: int, high: int, size: tuple[int, ...], *, generator: Generator) -> Any:
    return generator.draws.integers(low, high, size)
