"""Optimizers step by step against torch's on float64, and on torch's own tensors in place."""

from __future__ import annotations

import copy
import itertools
from typing import Any

import numpy as np
import pytest
import torch

import plait_optim as optim

SGD: list[dict[str, Any]] = [
    {"lr": 0.1},
    {"lr": 0.1, "weight_decay": 0.1, "maximize": True},
    {"lr": 0.1, "momentum": 0.9, "dampening": 0.2},
    {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1},
]
ADAM: list[dict[str, Any]] = [
    {"lr": 0.1, "weight_decay": decay, "amsgrad": amsgrad, "maximize": maximize}
    for decay, amsgrad, maximize in itertools.product((0, 0.1), (False, True), (False, True))
] + [{"lr": 0.1, "betas": (0.4, 0.7), "eps": 1e-2}]


def grid(**choices: Any) -> list[dict[str, Any]]:
    """Return all combinations of options."""
    return [
        dict(zip(choices, values, strict=True)) for values in itertools.product(*choices.values())
    ]


DECAY: dict[str, Any] = {"lr": [0.1], "weight_decay": [0, 0.1], "maximize": [False, True]}
DECOUPLED: dict[str, Any] = {**DECAY, "decoupled_weight_decay": [False, True]}
OPTIONS: dict[str, list[dict[str, Any]]] = {
    "SGD": SGD,
    "Adam": ADAM,
    "AdamW": ADAM,
    "NAdam": [*grid(**DECOUPLED), {"momentum_decay": 0.1, "betas": (0.4, 0.7), "eps": 1e-2}],
    # the variance is rectified from the second step on with these betas, or the sixth
    "RAdam": [*grid(**DECOUPLED), *grid(lr=[0.1], betas=[(0.4, 0.7), (0.9, 0.99)], eps=[1e-2])],
    "Adamax": [*grid(**DECAY), {"betas": (0.4, 0.7), "eps": 1e-2}],
    "Adagrad": [*grid(**DECAY), *grid(lr_decay=[0.1], initial_accumulator_value=[0.5])],
    "Adafactor": [
        *grid(**DECAY),
        *grid(lr=[0.5], beta2_decay=[-0.3], eps=[(1e-4, 1e-1), (None, 1e-6)], d=[1.0, 3.0]),
    ],
    "Adadelta": [*grid(**DECAY), {"rho": 0.5, "eps": 1e-2}, {}],
    "RMSprop": [*grid(**DECAY, momentum=[0, 0.9], centered=[False, True]), {"alpha": 0.5}],
    "Rprop": [
        *grid(lr=[0.1], maximize=[False, True]),
        {"etas": (0.3, 2.0), "step_sizes": (0.02, 1)},
    ],
    "ASGD": [*grid(**DECAY), *grid(lr=[0.1], lambd=[0.1], alpha=[0.5], t0=[0, 2])],
}
CASES = [(name, options) for name, cases in OPTIONS.items() for options in cases]
STEPS = 8
FUSED = ("Adam", "AdamW", "Adagrad")  # SGD's of torch 2.13 is wrong on halves, by 0.3 in a step
# how much of the largest change torch's own roundings may make, in units of the last digit
ROUNDINGS = {"plain": 6, "fused": 1}
SHAPES = [(4, 3), (3,), (), (2, 5, 2, 2)]


@pytest.fixture(autouse=True)
def _numbers_of_torch_are_double() -> Any:
    # torch keeps the numbers of a state (mu_product, eta, mu) in its default dtype
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def torch_params(seed: int = 0) -> list[Any]:
    generator = torch.Generator().manual_seed(seed)
    params = [
        torch.randn(shape, generator=generator, dtype=torch.float64).requires_grad_()
        for shape in SHAPES
    ]
    last = params[-1].detach().to(memory_format=torch.channels_last).requires_grad_()
    return [*params[:-1], last]


def close(own: Any, theirs: Any, before: Any, more: float) -> None:
    """Within a last digit of the halves, and ``more`` of the largest change."""
    information = torch.finfo(own.dtype)
    own, theirs, before = (v.detach().double() for v in (own, theirs, before))
    largest = (theirs - before).abs().max().item()
    last = information.eps * torch.maximum(theirs.abs(), before.abs()).clamp(information.tiny)
    excess = ((own - theirs).abs() - last).max().item()
    assert excess <= more * largest, (excess, largest)


def gradients(t: int) -> list[Any]:
    generator = torch.Generator().manual_seed(100 + t)
    return [torch.randn(shape, generator=generator, dtype=torch.float64) for shape in SHAPES]


@pytest.mark.parametrize(("name", "options"), CASES, ids=str)
def test_step_by_step(name: str, options: dict[str, Any]) -> None:
    theirs, arrays, in_place = torch_params(), [], torch_params()
    arrays = [p.detach().numpy().copy() for p in theirs]
    oracle = getattr(torch.optim, name)(theirs, **options)
    on_numpy = getattr(optim, name)(arrays, **options)
    on_torch = getattr(optim, name)(in_place, **options)
    for t in range(STEPS):
        gradient_list = gradients(t)
        for p, q, g in zip(theirs, in_place, gradient_list, strict=True):
            p.grad, q.grad = g, g.clone()
        oracle.step()
        on_numpy.step(grads=[g.numpy() for g in gradient_list])
        on_torch.step()
        for p, a, q in zip(theirs, arrays, in_place, strict=True):
            np.testing.assert_allclose(a, p.detach(), rtol=1e-12, atol=1e-14)
            np.testing.assert_allclose(q.detach(), p.detach(), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(("name", "options"), CASES, ids=str)
def test_state_dicts_go_both_ways(name: str, options: dict[str, Any]) -> None:
    ours, theirs = torch_params(), torch_params()
    own = getattr(optim, name)(ours, **options)
    other = getattr(torch.optim, name)(theirs, **options)

    def both(t: int) -> None:
        for p, q, g in zip(ours, theirs, gradients(t), strict=True):
            p.grad, q.grad = g, g.clone()
        own.step()
        other.step()
        for p, q in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(p.detach(), q.detach(), rtol=1e-11, atol=1e-13)

    both(0)
    both(1)
    assert set(own.state_dict()["param_groups"][0]) == set(other.state_dict()["param_groups"][0])
    from_torch, from_plait = copy.deepcopy(other.state_dict()), copy.deepcopy(own.state_dict())
    own.load_state_dict(from_torch)
    other.load_state_dict(from_plait)
    both(2)


# torch's plain steps read second moments after rounding: keep them where float16 has digits
MOMENTS: dict[str, Any] = {"betas": (0.5, 0.75), "eps": 1e-3}
HALF_OPTIONS: dict[str, dict[str, Any]] = {
    "SGD": {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1},
    "Adam": {"lr": 0.1, "weight_decay": 0.1, "amsgrad": True, **MOMENTS},
    "AdamW": {"lr": 0.1, "weight_decay": 0.1, "maximize": True, **MOMENTS},
    "NAdam": {"lr": 0.1, "weight_decay": 0.1, **MOMENTS},
    "RAdam": {"lr": 0.1, **MOMENTS},
    "Adamax": {"lr": 0.1, "eps": 1e-3},
    "Adagrad": {"lr": 0.1, "lr_decay": 0.1, "initial_accumulator_value": 0.5},
    "Adafactor": {"lr": 0.1, "weight_decay": 0.1},
    "Adadelta": {"lr": 1.0, "eps": 1e-2},
    "RMSprop": {"lr": 0.1, "momentum": 0.9, "alpha": 0.75, "eps": 1e-3},
    "Rprop": {"lr": 0.125},
    "ASGD": {"lr": 0.1, "lambd": 0.1, "t0": 2},
    "Muon": {"lr": 0.1},
}
HALF_CASES = [(name, fused) for name in HALF_OPTIONS for fused in (False, True)]
HALF_CASES = [case for case in HALF_CASES if not case[1] or case[0] in FUSED]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize(("name", "fused"), HALF_CASES)
def test_halves(name: str, fused: bool, dtype: Any) -> None:
    """Each step starts from torch's parameters and state. Fused steps round once, others each
    term.
    """
    options = {**HALF_OPTIONS[name], **({"fused": True} if fused else {})}
    shapes = [(4, 3), (5, 300)] if name == "Muon" else [*SHAPES, (5, 300)]
    generator = torch.Generator().manual_seed(3)

    def draw() -> list[Any]:
        return [torch.randn(shape, generator=generator).to(dtype) for shape in shapes]

    theirs = [p.requires_grad_() for p in draw()]
    own = [p.detach().clone().requires_grad_() for p in theirs]
    oracle, optimizer = getattr(torch.optim, name)(theirs, **options), None
    more = ROUNDINGS["fused" if fused else "plain"] * torch.finfo(dtype).eps
    if name == "Muon":  # torch's iterates in bfloat16, whatever the dtype
        more = 20 * torch.finfo(torch.bfloat16).eps
    for _ in range(STEPS):
        before = [p.detach().clone() for p in theirs]
        states = copy.deepcopy([oracle.state[p] for p in theirs])
        optimizer = getattr(optim, name)(own, **options)
        optimizer.load_state_dict(copy.deepcopy(oracle.state_dict()))
        for p, q, g in zip(theirs, own, draw(), strict=True):
            p.grad, q.grad = g, g.clone()
        oracle.step()
        optimizer.step()
        for p, q, start, state in zip(theirs, own, before, states, strict=True):
            assert q.dtype is dtype
            close(q, p, start, more)
            assert set(optimizer.state[q]) == set(oracle.state[p])
            for key, value in oracle.state[p].items():
                if value.dtype is dtype:
                    reference = optimizer.state[q][key]
                    assert reference.dtype is dtype
                    close(reference, value, state.get(key, torch.zeros_like(value)), more)
        with torch.no_grad():
            for p, q in zip(theirs, own, strict=True):
                q.copy_(p)
    assert optimizer is not None
    oracle.load_state_dict(copy.deepcopy(optimizer.state_dict()))


def test_torch_sees_the_write() -> None:
    p = torch.ones(3, requires_grad=True)
    loss = (p * p).sum()
    before = p._version
    optim.SGD([p], lr=0.1).step(grads=[torch.ones(3)])
    assert p._version > before
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_zero_grad_on_torch() -> None:
    p = torch.ones(3, requires_grad=True)
    optimizer = optim.Adam([p])
    p.sum().backward()
    optimizer.zero_grad(set_to_none=False)
    assert p.grad.tolist() == [0, 0, 0]
    optimizer.zero_grad()
    assert p.grad is None


def test_closures_run_with_grad() -> None:
    p = torch.ones(1, requires_grad=True)
    optimizer = optim.SGD([p], lr=0.5)

    def closure() -> Any:
        optimizer.zero_grad()
        loss = (p * p).sum()
        loss.backward()
        return loss

    assert optimizer.step(closure).item() == 1.0
    assert p.item() == 0.0


MUON = [
    {"lr": 0.1},
    {"lr": 0.1, "nesterov": False, "weight_decay": 0.0, "momentum": 0.5},
    {"lr": 0.1, "adjust_lr_fn": "match_rms_adamw", "ns_steps": 3},
    {"lr": 0.1, "ns_coefficients": (1.5, -0.5, 0.0), "eps": 1.0, "adjust_lr_fn": "original"},
]


@pytest.mark.parametrize("options", MUON, ids=str)
def test_muon(options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    # torch's goes through bfloat16, which has two digits: leave that out
    monkeypatch.setattr(torch.Tensor, "bfloat16", torch.Tensor.clone)
    generator = torch.Generator().manual_seed(0)
    shapes = [(4, 3), (3, 5), (1, 4), (6, 6)]
    theirs = [torch.randn(shape, generator=generator).requires_grad_() for shape in shapes]
    own = [p.detach().clone().requires_grad_() for p in theirs]
    arrays = [p.detach().numpy().copy() for p in theirs]
    oracle = torch.optim.Muon(theirs, **options)
    optimizer, on_numpy = optim.Muon(own, **options), optim.Muon(arrays, **options)
    for t in range(6):
        if t == 3:  # each continues from the state that the other saved
            saved = copy.deepcopy(oracle.state_dict())
            oracle.load_state_dict(copy.deepcopy(optimizer.state_dict()))
            optimizer.load_state_dict(saved)
        grads = [torch.randn(shape, generator=generator) for shape in shapes]
        for p, q, g in zip(theirs, own, grads, strict=True):
            p.grad, q.grad = g, g.clone()
        oracle.step()
        optimizer.step()
        on_numpy.step(grads=[g.numpy() for g in grads])
        for p, q, a in zip(theirs, own, arrays, strict=True):
            np.testing.assert_allclose(q.detach(), p.detach(), rtol=1e-10, atol=1e-12)
            np.testing.assert_allclose(a, p.detach(), rtol=1e-10, atol=1e-12)
    assert set(saved["param_groups"][0]) == set(optimizer.state_dict()["param_groups"][0])


LBFGS: list[dict[str, Any]] = [
    {},
    {"lr": 0.1},
    {"history_size": 3, "max_iter": 7},
    {"max_eval": 6, "max_iter": 30},
    {"lr": 2.0, "max_iter": 5},
    {"tolerance_grad": 1e-2, "tolerance_change": 1e-3},
]


def regression(optimizer: Any, weights: list[Any], calls: list[int]) -> Any:
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(40, 5, generator=generator)
    y = (x @ torch.randn(5, 3, generator=generator)).sin()

    def closure() -> Any:
        calls.append(1)
        optimizer.zero_grad()
        loss = ((torch.tanh(x @ weights[0] + weights[1]) @ weights[2] - y) ** 2).mean()
        loss.backward()
        return loss

    return closure


@pytest.mark.parametrize("search", [None, "strong_wolfe"])
@pytest.mark.parametrize("options", LBFGS, ids=str)
def test_lbfgs(options: dict[str, Any], search: str | None) -> None:
    sides = []
    for module in (torch.optim, optim):
        generator = torch.Generator().manual_seed(0)
        weights = [torch.randn(s, generator=generator) for s in [(5, 8), (8,), (8, 3)]]
        weights = [w.requires_grad_() for w in weights]
        optimizer = module.LBFGS(weights, **options, line_search_fn=search)
        calls: list[int] = []
        sides.append((optimizer, weights, regression(optimizer, weights, calls), calls))
    (theirs, them, their_closure, their_calls), (own, us, closure, calls) = sides
    for t in range(3):
        assert closure().item() == pytest.approx(their_closure().item(), rel=1e-9)
        theirs.step(their_closure)
        own.step(closure)
        assert len(calls) == len(their_calls)
        for p, q in zip(them, us, strict=True):
            np.testing.assert_allclose(q.detach(), p.detach(), rtol=1e-6, atol=1e-7)
        if t == 1:
            saved = copy.deepcopy(theirs.state_dict())
            assert set(saved["param_groups"][0]) == set(own.state_dict()["param_groups"][0])
            state = own.state_dict()["state"][0]
            assert set(saved["state"][0]) - {"al"} == set(state) - {"al"}
            theirs.load_state_dict(copy.deepcopy(own.state_dict()))
            own.load_state_dict(saved)
            with torch.no_grad():
                for p, q in zip(them, us, strict=True):
                    q.copy_(p)


@pytest.mark.parametrize("name", ["Adam", "SGD", "RMSprop", "NAdam", "Muon"])
def test_clipping_within_the_step(name: str) -> None:
    generator = torch.Generator().manual_seed(0)
    theirs = [torch.randn(4, 3, generator=generator).requires_grad_() for _ in range(3)]
    own = [p.detach().clone().requires_grad_() for p in theirs]
    oracle, optimizer = getattr(optim, name)(theirs, lr=0.1), getattr(optim, name)(own, lr=0.1)
    for t in range(4):
        for p, q in zip(theirs, own, strict=True):
            p.grad = torch.randn(4, 3, generator=generator)
            q.grad = p.grad.clone()
        before = [q.grad.clone() for q in own]
        bound = [1.0, 0.1, 100.0, 1e-3][t]
        norm = torch.nn.utils.clip_grad_norm_(theirs, bound)
        oracle.step()
        optimizer.step(max_norm=bound)
        assert optimizer.grad_norm == pytest.approx(norm.item(), rel=1e-12)
        for p, q, g in zip(theirs, own, before, strict=True):
            np.testing.assert_allclose(q.detach(), p.detach(), rtol=1e-12, atol=1e-13)
            assert torch.equal(q.grad, g)


def _own_state(lib: Any, values: dict[str, Any], kind: Any, dtype: str) -> list[Any]:
    """Save and load the state of an optimizer that a program wrote, and describe it."""

    class Own(kind):  # type: ignore[misc]
        def __init__(self, params: Any) -> None:
            if kind is lib.optim.Optimizer:
                super().__init__(params, {"lr": 1.0})
            else:
                super().__init__(params)

        def step(self, closure: Any = None) -> None:
            pass

    def made(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            return lib.from_numpy(value.copy())
        if isinstance(value, dict):
            return {key: made(each) for key, each in value.items()}
        return type(value)(map(made, value)) if isinstance(value, (list, tuple)) else value

    def described(value: Any) -> Any:
        if isinstance(value, lib.Tensor):
            return str(value.dtype).rpartition(".")[2], value.tolist()
        if isinstance(value, dict):
            return {key: described(each) for key, each in value.items()}
        if isinstance(value, (list, tuple)):
            return type(value).__name__, [described(each) for each in value]
        return type(value).__name__, repr(value)

    param = lib.ones(3, dtype=getattr(lib, dtype))
    optimizer, other = Own([param]), Own([param])
    optimizer.state[param].update(made(values))
    optimizer.state["everywhere"] = made(values)
    other.load_state_dict(optimizer.state_dict())
    return [described(other.state[param]), described(other.state["everywhere"])]


@pytest.mark.parametrize("base", ["Optimizer", "SGD"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int64"])
def test_state_of_a_programs_optimizer(base: str, dtype: str) -> None:
    """Loaded values have PyTorch's types, dtypes and bits."""
    import plait

    rng = np.random.default_rng(0)
    shapes: list[Any] = [(), (3,), (2, 2)]
    for kind in ("float64", "float32", "float16", "int64", "int32", "uint8", "bool"):
        for shape in shapes:
            array = rng.integers(0, 2, shape).astype(kind)
            values = {
                "step": array,
                "kept": array,
                "none": None,
                "number": 0.5,
                "count": 7,
                "flag": True,
                "many": [array, (array, 1)],
                "deep": {"step": array, "x": [1.5]},
            }
            theirs, ours = (
                _own_state(lib, values, getattr(lib.optim, base), dtype) for lib in (torch, plait)
            )
            assert ours == theirs
