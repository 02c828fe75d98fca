"""A program without mistakes: type checkers must report nothing here."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

import plait
import plait.nn as nn
import plait.nn.functional as F
from plait import Tensor, linalg, optim
from plait.autograd import Function, grad
from plait.distributions import Categorical, Normal
from plait.func import functional_call, hessian, stack_module_state
from plait.func.pytree import tree_map
from plait.nn.utils import clip_grad_norm_
from plait.optim.lr_scheduler import CosineAnnealingLR, StepLR
from plait.utils.checkpoint import checkpoint
from plait.utils.data import (
    ConcatDataset,
    DataLoader,
    Dataset,
    IterableDataset,
    TensorDataset,
    random_split,
)


class Net(nn.Module):
    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.first = nn.Linear(4, width)
        self.norm = nn.BatchNorm1d(width)
        self.rest = nn.Sequential(nn.ReLU(), nn.Dropout(0.1), nn.Linear(width, 3))
        self.scale = nn.Parameter(plait.ones(3))
        self.layers = nn.ModuleList([nn.Linear(3, 3) for _ in range(2)])
        self.register_buffer("steps", plait.zeros((), dtype=plait.int64))

    def forward(self, x: Tensor) -> Tensor:
        x = self.norm(self.first(x))
        x = self.rest(x) * self.scale
        for layer in self.layers:
            x = F.relu(layer(x), inplace=False)
        return x.log_softmax(dim=-1)


class Squares(Dataset[tuple[Tensor, Tensor]]):
    def __len__(self) -> int:
        return 16

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        x = plait.full((4,), float(index))
        return x, (x * x).sum().long() % 3


class Numbers(IterableDataset[int]):
    def __iter__(self) -> Iterator[int]:
        return iter(range(3))


class Double(Function):
    @staticmethod
    def forward(ctx, x):  # type: ignore[no-untyped-def]
        ctx.save_for_backward(x)
        return 2 * x

    @staticmethod
    def backward(ctx, g):  # type: ignore[no-untyped-def]
        (x,) = ctx.saved_tensors
        return 2 * g + 0 * x


def train(epochs: int = 1) -> float:
    plait.manual_seed(0)
    model = Net().train()
    optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
    scheduler = StepLR(optimizer, step_size=1, gamma=0.5)
    criterion = nn.NLLLoss()
    loader = DataLoader(Squares(), batch_size=4, shuffle=True, num_workers=0, drop_last=True)
    loss = plait.zeros(())
    for _ in range(epochs):
        for x, y in loader:
            optimizer.zero_grad(set_to_none=True)
            loss = criterion(model(x), y)
            loss.backward()
            clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        scheduler.step()
    with plait.no_grad():
        model.eval()
        guess = model(plait.randn(2, 4)).argmax(dim=1)
        assert guess.shape == (2,) and guess.tolist()
    return float(loss.item())


@plait.no_grad()
def tensors() -> None:
    x = plait.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=plait.float64, requires_grad=False)
    y = plait.arange(4).reshape(2, 2).to(plait.float32)
    z = (x + 1) * 2 - y / 3 + x**2 @ y.T.double()
    z += 1
    z[0, :] = 0
    z[..., None][z > 0] = 1.0
    values, indices = z.max(dim=1)
    best = z.max(1).values + z.topk(1, dim=1).values.squeeze(1) + z.sort(descending=True).values[0]
    assert values.shape == indices.shape == best.shape
    u, s, vh = linalg.svd(x)
    assert linalg.svd(x).S.allclose(s) and plait.linalg.norm(x).item() > 0
    q = linalg.qr(x).Q @ linalg.qr(x).R
    parts = plait.cat([x, q, u, vh], dim=0).chunk(4) + x.split(1)
    stacked = plait.stack([part.mean() for part in parts])
    a: np.ndarray = stacked.numpy()
    b = plait.from_numpy(a).to("cpu", plait.float32)
    assert b.dtype is plait.float32 and b.device.type == "cpu" and len(b) == a.shape[0]
    mask = plait.where(b > 0, b, plait.zeros_like(b)).bool() | (b < 0)
    n, m = x.shape
    w = x.view(n * m, -1).expand(-1, 3).permute(1, 0).contiguous().flatten(0, 1)
    assert bool(mask.any()) or w.sum() == x.sum() * 3 or 1 - x[0, 0] < 2
    total = sum(t.item() for t in x.flatten())
    f = plait.fft.rfft(x).abs().mean(dim=(0, 1), keepdim=True)
    g = plait.einsum("ij,jk->ik", x, x).clamp(min=0).clamp_(0, 1)
    print(total, f, g, x.device, x.size(0), x.stride(), x.unsqueeze(0).repeat(2, 1, 1).shape)


def derivatives() -> Tensor:
    x = plait.randn(3, requires_grad=True)
    y = Double.apply(x).sum()
    g: Tensor = grad(y, [x], create_graph=True)[0]
    x.register_hook(lambda g: g * 2)
    y.backward(retain_graph=True)
    jacobian = plait.autograd.functional.jacobian(lambda t: t**2, x)
    assert x.grad is not None and jacobian is not None
    return x.grad + g.detach()


def others() -> None:
    policy = Categorical(logits=plait.zeros(2, 3))
    action = policy.sample()
    loss = -policy.log_prob(action).mean() + Normal(0.0, 1.0).entropy()
    data = TensorDataset(plait.randn(8, 4), plait.zeros(8, dtype=plait.long))
    train_set, test_set = random_split(data, [6, 2])
    model = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.MaxPool2d(2), nn.Flatten())
    print(model(plait.randn(1, 3, 4, 4)).shape, len(train_set), len(test_set), loss)
    model.load_state_dict({name: value.clone() for name, value in model.state_dict().items()})
    for name, parameter in model.named_parameters():
        nn.init.zeros_(parameter)
        print(name, parameter.numel(), parameter.requires_grad)
    activation: Callable[[Tensor], Tensor] = nn.ReLU()
    both = ConcatDataset([data, data])
    DataLoader({0: 1.0}, sampler=[0])
    print(both[0][0].shape, checkpoint(model, activation(plait.randn(1, 3, 4, 4))))
    rnn = nn.LSTM(4, 8, num_layers=2, batch_first=True)
    output, (h, c) = rnn(plait.randn(2, 5, 4))
    attention = nn.MultiheadAttention(8, 2, batch_first=True)
    mixed, weights = attention(output, output, output)
    embedding = nn.Embedding(10, 8)(plait.tensor([1, 2]))
    print(h.shape, c.shape, mixed.shape, weights, embedding.norm(dim=-1))
    adam = optim.AdamW([{"params": model.parameters(), "lr": 1e-3}], betas=(0.9, 0.99))
    CosineAnnealingLR(adam, T_max=10).step()
    print(adam.param_groups[0]["lr"], F.cross_entropy(plait.randn(2, 3), plait.tensor([0, 1])))
    plait.save({"model": model.state_dict()}, "model.plait")
    plait.load("model.plait")["model"]


def transforms() -> None:
    layer = nn.Linear(4, 2)

    def loss(weights: dict[str, Tensor], x: Tensor) -> Tensor:
        output: Tensor = functional_call(layer, weights, (x,))
        return output.square().sum()

    weights, buffers = stack_module_state([nn.Linear(4, 2) for _ in range(3)])
    gradients = plait.vmap(plait.func.grad(loss), in_dims=(0, None))(weights, plait.ones(4))
    print(tree_map(lambda each: each.shape, gradients), buffers)
    print(hessian(lambda x: (x**3).sum())(plait.ones(2)), plait.vmap(plait.dot, chunk_size=2))


if __name__ == "__main__":
    train()
    tensors()
    derivatives()
    transforms()
    others()
