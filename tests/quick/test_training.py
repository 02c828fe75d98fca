"""A small network learns, with data, checkpoints, processes and profiles, in well under a minute.

`nox -s release` runs these tests on every Python and system that it has, also under emulation.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import plait
import plait.multiprocessing as mp
from plait import nn, optim
from plait.utils.data import DataLoader, TensorDataset

CLASSES = 4


class Network(nn.Module):
    """One convolution and one linear layer: 8x8 images to the scores of four classes."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 8, 3, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.fc = nn.Linear(8 * 4 * 4, CLASSES)

    def forward(self, x: plait.Tensor) -> plait.Tensor:
        x = nn.functional.max_pool2d(nn.functional.relu(self.norm(self.conv(x))), 2)
        return self.fc(x.flatten(1))


def images(count: int, seed: int) -> TensorDataset:
    """Noise with a bright quarter, whose position is the class."""
    random = np.random.default_rng(seed)
    labels = random.integers(0, CLASSES, count)
    pixels = random.normal(size=(count, 1, 8, 8)).astype(np.float32)
    for image, label in zip(pixels, labels, strict=True):
        row, column = 4 * (label // 2), 4 * (label % 2)
        image[:, row : row + 4, column : column + 4] += 1
    return TensorDataset(plait.from_numpy(pixels), plait.from_numpy(labels))


def accuracy(model: nn.Module, data: TensorDataset) -> float:
    model.eval()
    with plait.no_grad():
        x, labels = data.tensors
        return float((model(x).argmax(1) == labels).float().mean())


@pytest.fixture(scope="module")
def trained() -> Network:
    """The network after three passes over 512 images, which two workers load."""
    plait.manual_seed(0)
    model = Network()
    optimizer = optim.AdamW(model.parameters(), lr=0.01)
    schedule = optim.lr_scheduler.CosineAnnealingLR(optimizer, 3)
    loader = DataLoader(images(512, 0), batch_size=32, shuffle=True, num_workers=2)
    for _ in range(3):
        model.train()
        for x, labels in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), labels).backward()
            optimizer.step()
        schedule.step()
    return model


def test_a_small_network_learns(trained: Network) -> None:
    unseen = images(256, 1)
    plait.manual_seed(0)
    assert accuracy(Network(), unseen) < 0.6
    assert accuracy(trained, unseen) > 0.9


def test_a_checkpoint_gives_the_same_outputs(trained: Network, tmp_path: Path) -> None:
    path = tmp_path / "network.safetensors"
    plait.save(trained.state_dict(), path)
    other = Network()
    other.load_state_dict(plait.load(path))
    x = images(8, 2).tensors[0]
    trained.eval()
    other.eval()
    assert plait.equal(trained(x), other(x))


def test_values_are_those_of_numpy() -> None:
    random = np.random.default_rng(3)
    a = random.normal(size=(64, 48))
    b = random.normal(size=(48, 64))
    x, y = plait.from_numpy(a), plait.from_numpy(b)
    np.testing.assert_allclose((x @ y).numpy(), a @ b, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(plait.fft.fft(x).numpy(), np.fft.fft(a), rtol=1e-10, atol=1e-10)
    singular = plait.linalg.svdvals(x).numpy()
    np.testing.assert_allclose(singular, np.linalg.svd(a, compute_uv=False), rtol=1e-10)
    assert plait.exp(x).sum(0).numpy() == pytest.approx(np.exp(a).sum(0), rel=1e-12)


def test_gradients_are_those_of_differences() -> None:
    plait.manual_seed(4)
    x = plait.rand(2, 2, 5, 5, dtype=plait.float64, requires_grad=True)
    weight = plait.rand(3, 2, 3, 3, dtype=plait.float64, requires_grad=True)
    assert plait.autograd.gradcheck(nn.functional.conv2d, (x, weight))
    assert plait.autograd.gradcheck(lambda t: plait.logsumexp(t.flatten(1).tanh(), 1), (x,))


def mean_of_ranks(rank: int, group: mp.Group, results: plait.Tensor) -> None:
    with group.join(rank) as member:
        x = plait.full((3,), float(rank))
        member.all_reduce([x], "mean")
        results[rank] = x


@pytest.mark.parametrize("start_method", ["fork", "spawn"])
def test_processes_share_tensors_and_reduce_them(start_method: str) -> None:
    results = plait.zeros(2, 3).share_memory_()
    mp.spawn(mean_of_ranks, (mp.Group(2), results), nprocs=2, start_method=start_method)
    assert results.tolist() == [[0.5] * 3] * 2


def test_a_profile_has_the_operators() -> None:
    with plait.profiler.profile() as profile:
        plait.ones(8, 8) @ plait.ones(8, 8)
    assert "matmul" in str(profile.key_averages())
