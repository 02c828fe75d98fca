"""Random numbers in many ways: digests of the results and of the generator, in letters."""

# ruff: noqa: B023 - each function is called before its variables change

import hashlib
import random

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.nn.utils.prune
from torch.utils.data import (
    DataLoader,
    RandomSampler,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
    random_split,
)

FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
SHAPES = ((0,), (1,), (7,), (15,), (16,), (17,), (33,), (1000,), (3, 5, 7), (4, 16))


def digest(data):
    return hashlib.sha1(data).hexdigest()[:12].translate(str.maketrans("0123456789", "ghijklmnop"))


def show(name, draw):
    torch.manual_seed(1234)
    value = draw().detach()
    if value.dtype in (torch.bfloat16, torch.float16):
        value = value.double()
    if value.is_complex():
        value = torch.view_as_real(value)
    state = bytes(torch.get_rng_state().tolist())
    words = digest(np.ascontiguousarray(value.numpy()).tobytes()), digest(state)
    print(name.replace("torch.", ""), *words)


def filled(draw):
    """Draw into new tensors of all floating dtypes and some shapes, and into others in memory."""
    for dtype in FLOATS:
        for shape in SHAPES:
            yield f"{dtype} {shape}", lambda: draw(torch.empty(shape, dtype=dtype))
        yield f"{dtype} transposed", lambda: draw(torch.empty(5, 8, dtype=dtype).t())
        yield f"{dtype} part", lambda: draw(torch.zeros(19, 8, dtype=dtype)[::2, 1::3])
        image = torch.empty(2, 3, 4, 5, dtype=dtype).to(memory_format=torch.channels_last)
        yield f"{dtype} channels last", lambda: draw(torch.empty_like(image))


def steps(t):
    """Return numbers between 0 and 1 in the shape of a tensor and, within, in its order."""
    return ((torch.arange(t.numel()).reshape(t.shape) * 0.37) % 1).to(t.dtype)


DRAWS = {
    "uniform": lambda t: t.uniform_(0.3, 0.7),
    "normal": lambda t: t.normal_(0.3, 0.7),
    "log normal": lambda t: t.log_normal_(0.1, 0.3),
    "exponential": lambda t: t.exponential_(1.7),
    "cauchy": lambda t: t.cauchy_(0.3, 0.7),
    "geometric": lambda t: t.geometric_(0.3),
    "bernoulli": lambda t: t.bernoulli_(0.3),
    "bernoulli of tensor": lambda t: torch.bernoulli(torch.full_like(t, 0.3)),
    "dropout": lambda t: F.dropout(torch.full_like(t, 1.7), 0.3),
    "random": lambda t: t.random_(),
    "random below": lambda t: t.random_(100),
    "bernoulli of number": lambda t: torch.bernoulli(t, 0.3),
    "bernoulli by tensor": lambda t: t.bernoulli_(torch.full(t.shape, 0.3, dtype=torch.float64)),
    "poisson": lambda t: torch.poisson(steps(t) * 37),
    "rand": lambda t: torch.rand(t.shape, dtype=t.dtype),
    "randn": lambda t: torch.randn(t.shape, dtype=t.dtype),
}
for name, draw in DRAWS.items():
    for where, call in filled(draw):
        show(f"{name} {where}", call)

# of float32 and float64 only
REJECTIONS = {
    "binomial": lambda t: torch.binomial(torch.full_like(t, 19), steps(t)),
    "binomial of many": lambda t: torch.binomial(torch.full_like(t, 1900), steps(t)),
    "gamma": lambda t: torch._standard_gamma(steps(t) * 3 + 0.01),
    "rrelu": lambda t: F.rrelu(steps(t) - 0.8, 0.1, 0.4, training=True),
}
for name, draw in REJECTIONS.items():
    for where, call in filled(draw):
        if "16" not in where.split()[0]:
            show(f"{name} {where}", call)

for dtype in INTEGERS:
    show(f"integers {dtype} random", lambda: torch.empty(50, dtype=dtype).random_())
    show(f"integers {dtype} below", lambda: torch.empty(50, dtype=dtype).random_(3, 77))
    show(f"integers {dtype} randint", lambda: torch.randint(2, 60, (3, 5), dtype=dtype))
    show(f"integers {dtype} bernoulli", lambda: torch.empty(50, dtype=dtype).bernoulli_(0.3))
show("integers bool", lambda: torch.empty(50, dtype=torch.bool).random_())
for bits in (1, 24, 28, 31, 32, 40, 62):
    for more in (-1, 0, 1):
        show(f"randint {bits} {more}", lambda: torch.randint(2**bits + more, (30,)))
        show(
            f"randint {bits} {more} both signs",
            lambda: torch.randint(-(2**bits), 2**bits + more, (9,)),
        )
for dtype, top in ((torch.float32, 2**31), (torch.bfloat16, 1000), (torch.float16, 2**13 + 3)):
    show(f"rounded ends {dtype}", lambda: torch.empty(50, dtype=dtype).random_(-top // 3, top))
    show(f"rounded end {dtype}", lambda: torch.empty(50, dtype=dtype).random_(top))
show("all integers", lambda: torch.empty(20, dtype=torch.int64).random_(-(2**63), None))
show("integers from 5", lambda: torch.empty(20, dtype=torch.int64).random_(5, None))
for n in (0, 1, 2, 5, 100, 5000):
    show(f"permutation {n}", lambda: torch.randperm(n))

WEIGHTS = torch.linspace(0.1, 1, 39).reshape(3, 13)
for dtype in (torch.float32, torch.float64):
    weights = WEIGHTS.to(dtype)
    for count, again in ((1, False), (7, False), (13, False), (1, True), (40, True)):
        show(
            f"multinomial {dtype} {count} {again}", lambda: torch.multinomial(weights, count, again)
        )
        show(
            f"multinomial row {dtype} {count} {again}",
            lambda: torch.multinomial(weights[1], count, again),
        )

show("complex", lambda: torch.randn(10, dtype=torch.complex64))
show("complex double", lambda: torch.randn(3, dtype=torch.complex128))
show("complex uniform", lambda: torch.rand(10, dtype=torch.complex64))
show("means", lambda: torch.normal(torch.arange(20.0), torch.full((20,), 0.3)))
show("deviations", lambda: torch.normal(2.0, torch.full((20,), 0.3)))
show("sized", lambda: torch.normal(2.0, 0.3, (20,)))
show("left over", lambda: torch.cat([torch.randn(n) for n in (3, 2, 4, 20, 1)]))
own = torch.Generator().manual_seed(99)
show(
    "generator",
    lambda: torch.cat([torch.rand(4, generator=own), torch.randn(5, generator=own), torch.rand(2)]),
)
show("channels", lambda: F.dropout2d(torch.ones(3, 4, 2, 2), 0.4))
show("no mean", lambda: F.alpha_dropout(torch.zeros(30), 0.4, True) != 0)
show("channels of volumes", lambda: F.dropout3d(torch.ones(3, 4, 2, 2), 0.4))
show("slopes with gradients", lambda: F.rrelu(-torch.ones(9).requires_grad_(), training=True))
for name in ("uniform_", "normal_", "trunc_normal_", "xavier_uniform_", "xavier_normal_"):
    show(name, lambda: getattr(nn.init, name)(torch.empty(6, 5)))
show("narrow", lambda: nn.init.trunc_normal_(torch.empty(40), 0.0, 1.0, 1.5, 3.0) > 2)
show("kaiming", lambda: nn.init.kaiming_uniform_(torch.empty(6, 5)))
show("kaiming normal", lambda: nn.init.kaiming_normal_(torch.empty(6, 5)))
show("sparse", lambda: nn.init.sparse_(torch.empty(6, 5), 0.3))
for shape in ((6, 5), (5, 6), (4, 4)):
    show(f"orthogonal {shape}", lambda: (nn.init.orthogonal_(torch.empty(shape)) * 1e4).round())


def called(module, input):
    module(input)
    return module


MODULES = {
    "linear": lambda: nn.Linear(5, 3),
    "conv": lambda: nn.Conv2d(3, 4, 3),
    "transposed conv": lambda: nn.ConvTranspose1d(3, 4, 3),
    "embedding": lambda: nn.Embedding(7, 5),
    "bags": lambda: nn.EmbeddingBag(7, 5, padding_idx=1),
    "bilinear": lambda: nn.Bilinear(3, 4, 5),
    "lstm": lambda: nn.LSTM(4, 5, 2, bidirectional=True),
    "projected": lambda: nn.LSTM(4, 5, proj_size=3),
    "gru": lambda: nn.GRU(4, 5),
    "cell": lambda: nn.RNNCell(3, 4),
    "attention": lambda: nn.MultiheadAttention(8, 2),
    "keys": lambda: nn.MultiheadAttention(8, 2, kdim=5, vdim=6, add_bias_kv=True),
    "encoder": lambda: nn.TransformerEncoderLayer(8, 2, 16),
    "transformer": lambda: nn.Transformer(8, 2, 1, 1, 16),
    "lazy": lambda: called(nn.LazyLinear(3), torch.zeros(2, 5)),
    "lazy conv": lambda: called(nn.LazyConv2d(3, 2), torch.zeros(2, 5, 4, 4)),
    "pruned": lambda: nn.utils.prune.random_unstructured(nn.Linear(6, 5), "weight", 0.4),
    "adaptive": lambda: nn.AdaptiveLogSoftmaxWithLoss(8, 20, [5, 10]),
}
for name, make in MODULES.items():
    show(name, lambda: torch.cat([value.flatten() for value in make().state_dict().values()]))

data = TensorDataset(torch.arange(23.0))


def visited(*, times=2, **options):
    """Return the samples of some epochs, and what is drawn behind them."""
    loader = DataLoader(data, 4, **options)
    return torch.cat([batch for _ in range(times) for (batch,) in loader] + [torch.rand(2)])


show("loader", lambda: visited())
show("shuffled", lambda: visited(shuffle=True))
show("own generator", lambda: visited(shuffle=True, generator=torch.Generator().manual_seed(3)))
show("replacement", lambda: visited(sampler=RandomSampler(data, True, 70)))
show("several orders", lambda: visited(sampler=RandomSampler(data, False, 60)))
own = torch.Generator().manual_seed(4)
show("one generator", lambda: visited(sampler=RandomSampler(data, generator=own)))
show("weighted", lambda: visited(sampler=WeightedRandomSampler(torch.arange(23.0), 30)))
show("distinct", lambda: visited(sampler=WeightedRandomSampler(torch.arange(23.0), 9, False)))
show("part", lambda: visited(sampler=SubsetRandomSampler(range(9))))
show("split", lambda: torch.cat([torch.tensor(p.indices) for p in random_split(data, [10, 13])]))


class Noisy(torch.utils.data.Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        numbers = random.random(), np.random.rand(), torch.initial_seed() % 2**32
        return torch.cat([torch.rand(2, dtype=torch.float64), torch.tensor(numbers).double()])


def ages(loader):
    """Return the samples of two epochs of workers that stay."""
    return torch.cat([*loader, *loader, torch.rand(1, 5)])


def between(loader):
    """Return a number that is drawn between the loader's iterator and its first batch."""
    batches = iter(loader)
    number = torch.rand(1)
    return torch.cat([number, next(batches)[0]])


show("first batch", lambda: between(DataLoader(data, 4, shuffle=True)))
replicas = torch.utils.data.distributed.DistributedSampler(data, 3, 1, seed=4)
show("replicas", lambda: torch.tensor(list(replicas)))
show(
    "workers that stay",
    lambda: ages(DataLoader(Noisy(), 2, num_workers=2, persistent_workers=True)),
)
show("workers", lambda: torch.cat(list(DataLoader(Noisy(), 2, num_workers=2))))
