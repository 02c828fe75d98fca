"""The decompositions of the steps, which other devices run, against the CPU's kernels."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import plait_abi
import plait_core as pc
import plait_optim as optim
from plait_optim._component import operator

LIBRARY = Path(optim.__file__).parent / "lib" / "libplait_optim.so"
DTYPES = {
    # after four steps; halves are rounded to their dtype at each
    "float64": (pc.float64, 1e-13),
    "float32": (pc.float32, 5e-6),
    "float16": (pc.float16, 2e-3),
    "bfloat16": (pc.bfloat16, 1.6e-2),
}


@contextlib.contextmanager
def decomposed() -> Iterator[None]:
    """Without the kernels: operators stay defined when their plug-in is detached."""
    operator("sgd_step")  # it is loaded at the first step
    plait_abi.detach("plait_optim")
    try:
        assert not [line for line in plait_abi.report() if line.name == "adam_step"]
        yield
    finally:
        plait_abi.load(LIBRARY)
        assert [line for line in plait_abi.report() if line.name == "adam_step"]


def choose(rng: np.random.Generator, values: Any) -> Any:
    return values[int(rng.integers(len(values)))]


def common(rng: np.random.Generator) -> dict[str, Any]:
    return {
        "lr": choose(rng, [0.01, 0.1]),
        "weight_decay": choose(rng, [0.0, 0.1]),
        "maximize": choose(rng, [False, True]),
    }


def averaged(rng: np.random.Generator) -> dict[str, Any]:
    betas = choose(rng, [(0.9, 0.999), (0.5, 0.8), (0.0, 0.9)])
    return {**common(rng), "betas": betas, "eps": choose(rng, [1e-8, 1e-3])}


def sgd(rng: np.random.Generator) -> dict[str, Any]:
    momentum = choose(rng, [0.0, 0.9])
    nesterov = momentum > 0 and choose(rng, [False, True])
    dampening = 0.0 if nesterov else choose(rng, [0.0, 0.3])
    own = {"momentum": momentum, "nesterov": nesterov, "dampening": dampening}
    return {**common(rng), **own}


def rprop(rng: np.random.Generator) -> dict[str, Any]:
    return {
        "lr": choose(rng, [0.01, 0.5]),
        "maximize": choose(rng, [False, True]),
        "etas": choose(rng, [(0.5, 1.2), (0.3, 2.0)]),
        "step_sizes": choose(rng, [(1e-6, 50.0), (0.1, 0.5)]),
    }


def counted(rng: np.random.Generator) -> dict[str, Any]:
    return {**averaged(rng), "capturable": choose(rng, [False, True])}


OPTIONS: dict[str, Callable[[np.random.Generator], dict[str, Any]]] = {
    "SGD": sgd,
    "Adam": lambda rng: {**counted(rng), "amsgrad": choose(rng, [False, True])},
    "AdamW": lambda rng: {**counted(rng), "amsgrad": choose(rng, [False, True])},
    "NAdam": lambda rng: {**averaged(rng), "decoupled_weight_decay": choose(rng, [False, True])},
    "RAdam": lambda rng: {**averaged(rng), "decoupled_weight_decay": choose(rng, [False, True])},
    "Adamax": counted,
    "Adagrad": lambda rng: {**common(rng), "lr_decay": choose(rng, [0.0, 0.1])},
    "Adadelta": lambda rng: {**common(rng), "rho": choose(rng, [0.9, 0.5])},
    "RMSprop": lambda rng: {
        **common(rng),
        "momentum": choose(rng, [0.0, 0.9]),
        "centered": choose(rng, [False, True]),
        "alpha": choose(rng, [0.99, 0.5]),
    },
    "Rprop": rprop,
    "ASGD": lambda rng: {**common(rng), "lambd": 0.1, "t0": choose(rng, [0.0, 1e6])},
}


def tensors(rng: np.random.Generator, dtype: Any) -> list[Any]:
    """Arrays of several layouts: dense in two orders, with gaps, 0-d, empty."""

    def make(*shape: int) -> Any:
        return pc.from_numpy(rng.standard_normal(shape)).to(dtype)

    return [make(5), make(6, 4).t(), make(9, 8)[::2, 1:], make(), make(0, 3), make(2, 3, 4)]


def values(tensor: Any) -> npt.NDArray[Any]:
    return np.array(tensor.double().numpy())


def trained(name: str, options: dict[str, Any], dtype: Any, clips: bool) -> list[Any]:
    rng = np.random.default_rng(2)
    params = tensors(rng, dtype)
    optimizer = getattr(optim, name)(params, **options)
    references = {}
    for step in range(4):
        # a gradient of the last parameter comes later, so that numbers of steps differ
        grads = tensors(rng, dtype)[: 5 + (step > 1)]
        grads += [None] * (6 - len(grads))
        optimizer.step(grads=grads, **({"max_norm": 1.0} if clips else {}))
    for i, param in enumerate(params):
        for key, value in optimizer.state[param].items():
            references[i, key] = value
    return [*params, references]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", OPTIONS)
def test_decompositions_follow_their_kernel(name: str, dtype: str) -> None:
    rng = np.random.default_rng(3)
    kind, rtol = DTYPES[dtype]
    for _ in range(8):
        options, clips = OPTIONS[name](rng), choose(rng, [False, True])
        *expected, state = trained(name, options, kind, clips)
        with decomposed():
            *params, reference = trained(name, options, kind, clips)
        for own, want in zip(params, expected, strict=True):
            np.testing.assert_allclose(
                values(own), values(want), rtol=rtol, atol=rtol, err_msg=f"{options}"
            )
        assert reference.keys() == state.keys()
        for key, want in state.items():
            if not isinstance(want, pc.Tensor):
                assert reference[key] == want
                continue
            assert reference[key].dtype is want.dtype and reference[key].stride() == want.stride()
            np.testing.assert_allclose(
                values(reference[key]),
                values(want),
                rtol=rtol,
                atol=rtol,
                err_msg=f"{key} {options}",
            )


def test_values_that_are_not_finite_take_the_same_way() -> None:
    bad = pc.tensor([float("nan"), float("inf"), -float("inf"), 0.0, -0.0, 1.0])
    for name in OPTIONS:
        results = []
        for context in (contextlib.nullcontext(), decomposed()):
            with context:
                p = pc.ones(6)
                options = {"amsgrad": True} if name == "Adam" else {}
                optimizer = getattr(optim, name)([p], **options)
                for grad in (pc.ones(6), bad, -pc.ones(6)):
                    optimizer.step(grads=[grad])
                results.append(values(p))
        np.testing.assert_allclose(results[1], results[0], rtol=1e-5, err_msg=name)


@pytest.mark.parametrize("dtype", DTYPES)
def test_norms_and_averages(dtype: str) -> None:
    kind, rtol = DTYPES[dtype]
    rng = np.random.default_rng(4)
    grads = tensors(rng, kind)
    before = tensors(rng, kind)
    results = []
    for context in (contextlib.nullcontext(), decomposed()):
        averages = [b.clone() for b in before]
        with context:
            assert operator("grad_norm")([]).item() == 0
            norm = operator("grad_norm")(grads)
            assert norm.dtype is pc.float64 and norm.shape == ()
            for weight in (0.1, 0.7):
                operator("average_step")(averages, grads, weight=weight)
        results.append((norm.item(), [values(a) for a in averages]))
    np.testing.assert_allclose(results[1][0], results[0][0], rtol=1e-12)
    for own, want in zip(results[1][1], results[0][1], strict=True):
        np.testing.assert_allclose(own, want, rtol=rtol, atol=rtol)


def test_state_is_made_and_loaded() -> None:
    for dtype, _ in DTYPES.values():
        like = pc.ones(2, 3, 4, dtype=dtype).permute(2, 0, 1)[:, ::-1]
        expected = operator("optimizer_state")(like, 0.5)
        source = pc.from_numpy(np.arange(24.0).reshape(4, 2, 3))
        with decomposed():
            result = operator("optimizer_state")(like, 0.5)
            assert result.stride() == expected.stride() and result.dtype is expected.dtype
            assert result.tolist() == expected.tolist()
            operator("optimizer_state_load")(result, source)
            assert result.tolist() == source.tolist()
            with pytest.raises(ValueError, match=r"`value` must have the shape of `state`"):
                operator("optimizer_state_load")(result, source[0])


def test_what_kernels_refuse_decompositions_refuse() -> None:
    def refusals() -> list[str]:
        step, texts = operator("adamax_step"), []
        p, q = pc.ones(3), pc.ones(3)
        for arguments in (
            [[p], [q], [q], [q, q], [1]],
            [[p], [pc.ones(2)], [q], [q], [1]],
            [[p], [pc.ones(3, dtype=pc.float64)], [q], [q], [1]],
            [[pc.ones(3, dtype=pc.int64)], [q], [q], [q], [1]],
            [[p], [q], [q], [q], [0]],
        ):
            with pytest.raises(Exception, match=r"^adamax_step: ") as error:
                step(*arguments)
            texts.append(f"{error.type} {error.value}")
        fixed = np.ones(3, np.float32)
        fixed.flags.writeable = False
        for second in (fixed, pc.ones(1).expand(3)):
            with pytest.raises(ValueError, match=r"^adamax_step: `params`") as error:
                step([p, second], [q, q], [q, q], [q, q], [1])
            texts.append(str(error.value))
        for scale in (pc.ones(2), pc.tensor(1), 1j):
            with pytest.raises(Exception, match=r"^adamax_step: `grad_scale`") as error:
                step([p], [q], [q.clone()], [q.clone()], [1], grad_scale=scale)
            texts.append(f"{error.type} {error.value}")
        assert p.tolist() == [1.0] * 3
        return texts

    expected = refusals()
    with decomposed():
        assert refusals() == expected


def test_the_factor_of_gradients_may_be_a_tensor() -> None:
    for context in (contextlib.nullcontext(), decomposed()):
        with context:
            for scale in (0.5, pc.tensor(0.5), pc.tensor(0.5, dtype=pc.float16), np.array(0.5)):
                p = pc.ones(3)
                operator("sgd_step")([p], [pc.ones(3)], [], [1], lr=1.0, grad_scale=scale)
                assert p.tolist() == [0.5] * 3


def test_gradients_are_not_written() -> None:
    for name in OPTIONS:
        grad = pc.tensor([1.0, -2.0, 3.0])
        with decomposed():
            optimizer = getattr(optim, name)([pc.ones(3)], maximize=True)
            for _ in range(3):
                optimizer.step(grads=[grad], max_norm=1.0)
        assert grad.tolist() == [1.0, -2.0, 3.0], name
