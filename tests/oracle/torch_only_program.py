"""A program for PyTorch whose results, as JSON, are the same with plait: what `torch` alone has."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections import OrderedDict, namedtuple
from typing import Any

import torch
import torch.nn.functional as F
from torch import distributions as d, nn
from torch.fx.passes.split_module import split_module
from torch.quasirandom import SobolEngine
from torch.utils import _pytree as trees
from torch.utils.flop_counter import FlopCounterMode

FOUND: dict[str, dict[str, Any]] = {}
Pair = namedtuple("Pair", "a b")


def digest(x: torch.Tensor) -> str:
    return hashlib.sha256(x.numpy().tobytes()).hexdigest()


def numbers(x: torch.Tensor) -> list[float]:
    return [float(each) for each in x.detach().flatten().tolist()]


def fixed(*shape: int, scale: float = 1.0) -> torch.Tensor:
    """The same numbers everywhere."""
    count = torch.Size(shape).numel()
    values = (torch.arange(count, dtype=torch.float64) * 0.7).sin() * scale
    return values.reshape(shape).float()


def sobol() -> None:
    results = FOUND["sobol"] = {}
    for dimension, count in ((1, 9), (7, 300), (3000, 33), (21201, 5)):
        engine = SobolEngine(dimension)
        results[f"{dimension}"] = [digest(engine.draw(count)), digest(engine.sobolstate)]
        results[f"{dimension} later"] = digest(engine.fast_forward(11).draw(3))
    results["base 2"] = digest(SobolEngine(4).draw_base2(6, dtype=torch.float64))
    results = FOUND["scrambled"] = {}
    for dimension, seed in ((1, 0), (5, 1), (300, 12345), (12, 2**31)):
        engine = SobolEngine(dimension, scramble=True, seed=seed)
        results[f"{dimension}, {seed}"] = digest(engine.draw(20))
        results[f"{dimension}, {seed} later"] = digest(engine.fast_forward(5).draw(3))
        results[f"{dimension}, {seed} state"] = [digest(engine.shift), digest(engine.sobolstate)]


def flops() -> None:
    results = FOUND["flops"] = {}

    def leaf(*shape: int) -> torch.Tensor:
        return torch.ones(shape, requires_grad=True)

    net = nn.Sequential(
        nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(256, 5), nn.Linear(5, 2)
    )
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0)
    for name, function in (
        ("net", lambda: net(torch.ones(2, 3, 8, 8)).sum().backward()),
        ("mm", lambda: (leaf(3, 4) @ leaf(4, 5)).sum().backward()),
        ("3-d by 2-d", lambda: (leaf(2, 3, 4) @ leaf(4, 5)).sum().backward()),
        ("bmm", lambda: (leaf(2, 3, 4) @ leaf(2, 4, 5)).sum().backward()),
        ("addmm", lambda: torch.addmm(leaf(5), leaf(3, 4), leaf(4, 5)).sum().backward()),
        ("baddbmm", lambda: torch.baddbmm(leaf(5), leaf(2, 3, 4), leaf(2, 4, 5))),
        ("mv", lambda: leaf(3, 4) @ leaf(4)),
        ("linear", lambda: F.linear(leaf(2, 3, 4), leaf(5, 4), leaf(5)).sum().backward()),
        ("conv1d", lambda: F.conv1d(leaf(2, 4, 9), leaf(6, 4, 3)).sum().backward()),
        ("conv3d", lambda: F.conv3d(leaf(1, 2, 5, 5, 5), leaf(3, 2, 3, 3, 3)).sum().backward()),
        (
            "transposed",
            lambda: (
                F.conv_transpose2d(leaf(2, 3, 4, 4), leaf(3, 5, 3, 3), stride=2).sum().backward()
            ),
        ),
        (
            "attention",
            lambda: nn.MultiheadAttention(8, 2)(*[leaf(5, 2, 8)] * 3)[0].sum().backward(),
        ),
        ("encoder", lambda: layer(leaf(5, 2, 8)).sum().backward()),
    ):
        with FlopCounterMode(display=False) as counter:
            function()
        counts = counter.get_flop_counts()
        # attention that PyTorch computes whole on the CPU is not counted by it
        ops = counts.get("Global", {}).items()
        results[name] = sum(n for op, n in ops if "attention" not in str(op))
        for module in ("Sequential", "Sequential.0", "Sequential.3", "Sequential.4"):
            if name == "net":
                results[f"{name} {module}"] = sum(counts[module].values())
        if name in ("mm", "bmm", "conv1d", "baddbmm"):
            results[f"{name} names"] = {str(op): n for op, n in counts.get("Global", {}).items()}


def containers() -> None:
    results = FOUND["trees"] = {}
    tree = {"z": [1, (2, 3)], "a": OrderedDict(x=4), "p": Pair(5, [6]), "none": None}
    leaves, spec = trees.tree_flatten(tree)
    results["leaves"] = [str(leaf) for leaf in leaves]
    results["sizes"] = [spec.num_leaves, spec.num_nodes, spec.num_children]
    results["paths"] = [trees.keystr(path) for path, _ in trees.tree_flatten_with_path(tree)[0]]
    results["leaf"] = trees.LeafSpec() == trees.tree_structure(3)
    results["broadcast"] = trees._broadcast_to_and_flatten(
        [0, (1, 2)], trees.tree_structure(tree["z"])
    )
    result = trees.tree_map(lambda x: x + 1, fixed(3).max(0))
    results["kept"] = isinstance(result, torch.return_types.max)
    results["types"] = [kind.__name__ for kind in (torch.return_types.sort, torch.return_types.qr)]


def divergences() -> None:
    results = FOUND["divergences"] = {}
    t = torch.tensor
    each = {
        "Beta": d.Beta(t(1.7), t(0.8)),
        "ContinuousBernoulli": d.ContinuousBernoulli(t(0.3)),
        "Exponential": d.Exponential(t(2.0)),
        "Gamma": d.Gamma(t(2.0), t(1.2)),
        "Gumbel": d.Gumbel(t(0.3), t(1.7)),
        "Laplace": d.Laplace(t(0.3), t(1.7)),
        "Normal": d.Normal(t(0.2), t(1.3)),
        "Pareto": d.Pareto(t(0.15), t(5.0)),
        "Uniform": d.Uniform(t(0.2), t(0.8)),
        "HalfNormal": d.HalfNormal(t(0.8)),
        "Bernoulli": d.Bernoulli(t(0.3)),
        "Geometric": d.Geometric(t(0.3)),
        "Poisson": d.Poisson(t(2.0)),
        "Cauchy": d.Cauchy(t(0.3), t(1.7)),
        "Wide": d.Uniform(t(-2.0), t(3.0)),
    }
    for (one, p), (two, q) in itertools.product(each.items(), repeat=2):
        try:
            results[f"{one}, {two}"] = numbers(d.kl_divergence(p, q))
        except NotImplementedError:
            results[f"{one}, {two}"] = "missing"


def functions() -> None:
    results = FOUND["functions"] = {}
    x, y = fixed(3, 4), fixed(3, 4, scale=0.5)
    probs = x.softmax(1)
    for number in (0, 1, 2):
        for name, args in (
            ("kl_div", (probs.log(), y.softmax(1))),
            ("hinge_embedding_loss", (x, y.sign())),
            ("margin_ranking_loss", (x, y, y.sign())),
            ("cosine_embedding_loss", (x, y, torch.tensor([1.0, -1.0, 1.0]))),
            ("triplet_margin_loss", (x, y, x + 1)),
        ):
            results[f"{name} {number}"] = numbers(getattr(torch, name)(*args, reduction=number))
        results[f"poisson {number}"] = numbers(
            torch.poisson_nll_loss(x, probs, True, True, 1e-8, number)
        )
    rows, starts = torch.tensor([0, 2, 1, 1]), torch.tensor([0, 3, 3])
    for mode in (0, 1):
        result = torch.embedding_bag(x, rows, starts, False, mode)
        results[f"bags {mode}"] = numbers(result[0])
    big = fixed(2, 4, 6)
    ones, zeros = torch.ones(4), torch.zeros(4)
    result = torch.native_batch_norm(big, ones, zeros, None, None, True, 0.1, 1e-5)
    results["batch norm"] = [number for part in result for number in numbers(part)]
    result = torch.instance_norm(big, ones, zeros, None, None, True, 0.1, 1e-5, False)
    results["instance norm"] = numbers(result)
    results["norms"] = numbers(torch.norm_except_dim(big, 2, 1))
    weight = fixed(4, 2, 3)
    results["convolution"] = numbers(
        torch.convolution(big, weight, None, [2], [1], [1], True, [1], 2)
    )
    results["pool"] = [n for part in torch.adaptive_max_pool1d(big, 2) for n in numbers(part)]
    results["shuffle"] = numbers(torch.native_channel_shuffle(big, 2))
    params = [fixed(16, 4), fixed(16, 4), fixed(16), fixed(16)]
    state = torch.zeros(1, 4, 4), torch.zeros(1, 4, 4)
    steps = big.permute(2, 0, 1)[..., :4].reshape(3, 4, 4)
    result = torch.lstm(steps, state, params, True, 1, 0.0, False, False, False)
    results["lstm"] = [n for part in result for n in numbers(part)]
    small = [part[:12] for part in params]
    result = torch.gru(steps, state[0], small, True, 1, 0.0, False, False, False)
    results["gru"] = [n for part in result for n in numbers(part)]
    results["gru cell"] = numbers(torch.gru_cell(steps[0], state[0][0], *small))
    result = torch.rnn_relu(
        steps, state[0], [p[:4] for p in params], True, 1, 0.0, False, False, False
    )
    results["rnn"] = [n for part in result for n in numbers(part)]


class Two(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(3, 3), nn.Linear(3, 3)
        self.scale = nn.Parameter(torch.ones(3))

    def forward(self, x, y):  # type: ignore[no-untyped-def]
        first = self.a(x)
        both = first + y
        return self.b(both) * self.scale + first, both


def parts() -> None:
    results = FOUND["parts"] = {}
    model = Two()
    traced = torch.fx.symbolic_trace(model)
    early = {"a", "add"}
    result = split_module(traced, model, lambda node: int(node.name not in early))
    results["code"] = "".join(result.code.split())
    for name, child in result.named_children():
        results[name] = "".join(child.code.split())
    results["names"] = [name for name, _ in result.named_parameters()]


def eigenvalues() -> None:
    results = FOUND["lobpcg"] = {}
    a = fixed(12, 12).double()
    a = a @ a.mT + torch.diag(torch.arange(12).double())
    torch.manual_seed(0)
    results["largest"] = numbers(torch.lobpcg(a, k=2, niter=200, tol=1e-12)[0])
    results["smallest"] = numbers(torch.lobpcg(a, k=2, largest=False, niter=200, tol=1e-12)[0])


if __name__ == "__main__":
    for part in (sobol, flops, containers, divergences, functions, parts, eigenvalues):
        part()
    print(json.dumps(FOUND))
