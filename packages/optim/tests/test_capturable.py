"""Steps that are counted on the device of their parameters, here the CPU."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import plait_core as pc
import plait_optim as optim
from plait_optim._component import operator

OPTIONS: dict[str, dict[str, Any]] = {
    "Adam": {"lr": 0.1, "weight_decay": 0.1, "amsgrad": True},
    "AdamW": {"lr": 0.1, "betas": (0.5, 0.8), "maximize": True},
    "Adamax": {"lr": 0.1, "weight_decay": 0.1},
}


def tensors(rng: np.random.Generator, dtype: Any) -> list[Any]:
    shapes = [(5,), (4, 6), (), (0, 3), (2, 3, 4)]
    return [pc.from_numpy(np.array(rng.standard_normal(shape))).to(dtype) for shape in shapes]


def trained(name: str, dtype: Any, **more: Any) -> tuple[list[Any], list[float]]:
    """Return parameters after four steps, in two of which the last has no gradient, and counts."""
    rng = np.random.default_rng(2)
    params = tensors(rng, dtype)
    optimizer = getattr(optim, name)(params, **OPTIONS[name], **more)
    for step in range(4):
        grads = tensors(rng, dtype)
        optimizer.step(grads=[*grads[:-1], grads[-1] if step > 1 else None])
    return params, [float(optimizer.state[param]["step"]) for param in params]


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
@pytest.mark.parametrize("name", OPTIONS)
def test_steps_are_those_of_numbers_of_the_host(name: str, dtype: str) -> None:
    kind = getattr(pc, dtype)
    params, counts = trained(name, kind)
    counted, others = trained(name, kind, capturable=True)
    assert counts == others == [4, 4, 4, 4, 2]
    assert all(pc.equal(own, want) for own, want in zip(counted, params, strict=True))


def test_numbers_are_tensors_that_files_keep() -> None:
    p, q = pc.ones(3), pc.ones(3)
    first = optim.Adam([p], lr=0.1, capturable=True)
    first.step(grads=[pc.ones(3)])
    step = first.state[p]["step"]
    assert (step.dtype, step.shape, step.item()) == (pc.float32, (), 1)
    first.step(grads=[pc.ones(3)])
    assert first.state[p]["step"] is step and step.item() == 2
    for capturable in (False, True):
        other = optim.Adam([q], lr=0.1, capturable=capturable)
        other.load_state_dict(copy.deepcopy(first.state_dict()))
        other.param_groups[0]["capturable"] = capturable
        other.step(grads=[pc.ones(3)])
        assert other.state[q]["step"] == 3 and step.item() == 2
        other.param_groups[0]["capturable"] = not capturable
        other.step(grads=[pc.ones(3)])
        assert other.state[q]["step"] == 4


def test_a_parameter_that_begins_later_leaves_the_others() -> None:
    """A recorded graph writes to the tensors that they had."""
    p, q = pc.ones(3), pc.ones(3)
    optimizer = optim.Adam([p, q], lr=0.1, capturable=True)
    optimizer.step(grads=[pc.ones(3), None])
    before = dict(optimizer.state[p])
    optimizer.step(grads=[pc.ones(3), pc.ones(3)])
    assert all(optimizer.state[p][name] is value for name, value in before.items())
    assert (optimizer.state[p]["step"], optimizer.state[q]["step"]) == (2, 1)


def test_a_step_that_fails_does_not_count() -> None:
    p = pc.ones(3)
    optimizer = optim.Adam([p], lr=0.1, capturable=True)
    optimizer.step(grads=[pc.ones(3)])
    with pytest.raises(ValueError, match=r"grads\[0\].*shape"):
        optimizer.step(grads=[pc.ones(4)])
    assert optimizer.state[p]["step"].item() == 1


def test_what_cannot_be_counted() -> None:
    with pytest.raises(TypeError, match=r"Adam: parameters of `capturable`.*got numpy.ndarray"):
        optim.Adam([np.ones(3)], capturable=True).step(grads=[np.ones(3)])
    count, step = operator("count_steps"), operator("adam_step")
    with pytest.raises(ValueError, match="count_steps: `steps` must not be empty"):
        count([])
    with pytest.raises(ValueError, match=r"`steps\[1\]` must be a 0-d tensor.*; got int64"):
        count([pc.tensor(1.0), pc.tensor(1)])
    x = [pc.ones(2)]
    with pytest.raises(ValueError, match="`steps` must be empty where `counts` is given; got 1"):
        step(x, x, x, x, [], [1], counts=pc.ones(1).double())
    with pytest.raises(TypeError, match="`counts` must be float64; got float32"):
        step(x, x, x, x, [], [], counts=pc.ones(1))
    with pytest.raises(ValueError, match=r"`counts` must hold one number.*\(1,\); got \(2,\)"):
        step(x, x, x, x, [], [], counts=pc.ones(2).double())


@pytest.mark.parametrize("name", ["Adadelta", "RMSprop"])
def test_steps_that_do_not_depend_on_their_number(name: str) -> None:
    p, q = pc.ones(3), pc.ones(3)
    for param, capturable in ((p, False), (q, True)):
        optimizer = getattr(optim, name)([param], capturable=capturable)
        for _ in range(3):
            optimizer.step(grads=[pc.ones(3)])
    assert pc.equal(p, q)
