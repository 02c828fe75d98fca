"""Training steps of the examples, compiled: the bits of eager steps."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import plait
from plait import nn, optim
from plait.nn import functional as F
from plait_graph import compile

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
sys.path.insert(0, str(EXAMPLES))

import char_lstm  # noqa: E402
import dcgan  # noqa: E402
import gpt  # noqa: E402
import mnist  # noqa: E402
import ncf  # noqa: E402
import translate  # noqa: E402
import vae  # noqa: E402

Case = tuple[list[Any], Callable[..., Any], Callable[[], list[Any]]]


def _step(model: Any, optimizer: Any, loss_of: Callable[..., Any], clip: bool) -> Any:
    def step(*batch: Any) -> Any:
        optimizer.zero_grad()
        loss = loss_of(*batch)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0) if clip else None
        optimizer.step()
        return loss, norm

    return step


def of_mnist() -> Case:
    model = mnist.LeNet()
    optimizer = optim.Adam(model.parameters(), lr=1e-3)
    step = _step(model, optimizer, lambda x, y: F.cross_entropy(model(x), y), False)
    return [model], step, lambda: [plait.randn(4, 1, 28, 28), plait.randint(0, 10, (4,))]


def of_vae() -> Case:
    model = vae.VAE(latent=4, hidden=16)
    optimizer = optim.Adam(model.parameters(), lr=1e-3)
    step = _step(model, optimizer, lambda x: -vae.bound(x, *model(x)) / len(x), False)
    return [model], step, lambda: [plait.rand(4, vae.PIXELS)]


def of_gpt() -> Case:
    model = gpt.GPT(20, context=8, width=16, heads=2, layers=2)
    matrices = [p for p in model.parameters() if p.dim() > 1]
    others = [p for p in model.parameters() if p.dim() <= 1]
    optimizer = optim.AdamW(
        [{"params": matrices, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}],
        lr=4e-3,
    )

    def loss_of(text: Any) -> Any:
        return F.cross_entropy(model(text[:, :-1]).flatten(0, 1), text[:, 1:].flatten())

    return [model], _step(model, optimizer, loss_of, True), lambda: [plait.randint(0, 20, (3, 9))]


def of_char_lstm() -> Case:
    model = char_lstm.CharLSTM(20, hidden=8)
    optimizer = optim.Adam(model.parameters(), lr=3e-3)
    states = [(plait.zeros(1, 3, 8), plait.zeros(1, 3, 8))]

    def step(x: Any, y: Any, state: Any) -> Any:
        optimizer.zero_grad()
        scores, after = model(x, state)
        loss = F.cross_entropy(scores.flatten(0, 1), y.flatten())
        loss.backward()
        optimizer.step()
        states.append(tuple(s.detach() for s in after))
        return loss, states[-1]

    def data() -> list[Any]:
        return [plait.randint(0, 20, (3, 6)), plait.randint(0, 20, (3, 6)), states[0]]

    return [model], step, data


def of_translate() -> Case:
    model = translate.Translator(12, 14, width=8, hidden=8)
    optimizer = optim.Adam(model.parameters(), lr=1e-3)

    def loss_of(x: Any, y: Any) -> Any:
        scores = model(x, y[:, :-1])
        return F.cross_entropy(scores.flatten(0, 1), y[:, 1:].flatten(), ignore_index=translate.PAD)

    def data() -> list[Any]:
        return [
            plait.randint(translate.PAD + 1, 12, (3, 5)),
            plait.randint(translate.PAD + 1, 14, (3, 6)),
        ]

    return [model], _step(model, optimizer, loss_of, True), data


def of_ncf() -> Case:
    model = ncf.NeuMF(9, 11, width=4)
    optimizer = optim.Adam(model.parameters(), lr=1e-3)

    def loss_of(user: Any, film: Any, liked: Any) -> Any:
        return F.binary_cross_entropy_with_logits(model(user, film), liked)

    def data() -> list[Any]:
        return [plait.randint(0, 9, (8,)), plait.randint(0, 11, (8,)), plait.rand(8).round()]

    return [model], _step(model, optimizer, loss_of, False), data


def of_dcgan() -> Case:
    G, D = dcgan.generator(4), dcgan.discriminator(4)
    optimizer_G = optim.Adam(G.parameters(), lr=2e-4, betas=(0.5, 0.999))
    optimizer_D = optim.Adam(D.parameters(), lr=2e-4, betas=(0.5, 0.999))

    def step(real: Any) -> Any:
        # that of the example, without the reads of the losses
        optimizer_D.zero_grad()
        fake = G(plait.randn(len(real), dcgan.NOISE, 1, 1))
        loss_D = F.binary_cross_entropy_with_logits(D(real), plait.full((len(real),), 0.9))
        loss_D = loss_D + F.binary_cross_entropy_with_logits(
            D(fake.detach()), plait.zeros(len(real))
        )
        loss_D.backward()
        optimizer_D.step()
        optimizer_G.zero_grad()
        loss_G = F.binary_cross_entropy_with_logits(D(fake), plait.ones(len(real)))
        loss_G.backward()
        optimizer_G.step()
        return loss_D, loss_G

    return [G, D], step, lambda: [plait.rand(4, 1, 28, 28)]


CASES = {
    case.__name__[3:]: case for case in (of_mnist, of_vae, of_gpt, of_char_lstm, of_ncf, of_dcgan)
}


def bits(value: Any) -> Any:
    if isinstance(value, plait.Tensor):
        # memory that NumPy has had is no longer plait's alone
        return value.detach().clone().contiguous().numpy().tobytes()
    return [bits(item) for item in value] if isinstance(value, (list, tuple)) else value


def trained(name: str, frozen: bool | None) -> list[Any]:
    """Return what five steps leave; `frozen` is how they are compiled, or None."""
    plait.manual_seed(0)
    modules, step, data = CASES[name]()
    function = step if frozen is None else compile(step, frozen=frozen)
    seen = []
    for k in range(5):
        plait.manual_seed(k)
        seen.append(bits(function(*data())))
        for module in modules:
            seen.append(bits([p.grad for p in module.parameters()]))
            seen.append(bits([*module.parameters(), *module.buffers()]))
    return seen


@pytest.mark.parametrize("name", CASES)
def test_steps(name: str) -> None:
    eager = trained(name, None)
    assert trained(name, frozen=True) == eager
    assert trained(name, frozen=False) == eager


def test_lengths_that_python_reads() -> None:
    plait.manual_seed(0)
    _, step, data = of_translate()
    compiled = compile(step, frozen=True)
    with pytest.raises(NotImplementedError, match="reads the elements of a tensor"):
        compiled(*data())
