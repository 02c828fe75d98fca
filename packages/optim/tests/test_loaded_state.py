"""State is loaded as it was saved: by every optimizer here, and by those of programs."""

from __future__ import annotations

import collections
import copy
import inspect
import random
from typing import Any, NamedTuple

import numpy as np
import pytest

import plait_core as pc
import plait_optim as optim

OPTIMIZERS = sorted(
    name
    for name, cls in vars(optim).items()
    if inspect.isclass(cls) and issubclass(cls, optim.Optimizer) and cls is not optim.Optimizer
)
# options that make as many kinds of state as there are
OPTIONS: dict[str, dict[str, Any]] = {
    "SGD": {"momentum": 0.9},
    "Adam": {"amsgrad": True},
    "AdamW": {"amsgrad": True},
    "RMSprop": {"momentum": 0.9, "centered": True},
    "ASGD": {"t0": 1, "lambd": 0.1},
    "LBFGS": {"history_size": 2, "max_iter": 2},
}
LIBRARIES: list[tuple[str, Any]] = [("numpy", np.array), ("plait", pc.tensor)]


class Pair(NamedTuple):
    first: Any
    second: Any


def described(value: Any) -> Any:
    """Return a value as texts and numbers, with types, dtypes and bits."""
    if isinstance(value, dict):
        return type(value), [(key, described(each)) for key, each in value.items()]
    if isinstance(value, (list, tuple)):
        return type(value), [described(each) for each in value]
    if isinstance(value, pc.SparseTensor):
        return type(value), described(value.to_dense())
    if isinstance(value, pc.Tensor):
        return type(value), str(value.dtype), tuple(value.shape), repr(value.tolist())
    if isinstance(value, np.ndarray):
        return type(value), str(value.dtype), value.shape, repr(value.tolist())
    return type(value), repr(value)


def states_of(optimizer: Any) -> Any:
    return described(optimizer.state_dict()["state"])


def gradient(name: str, make: Any, step: int, shape: Any) -> Any:
    values = np.random.default_rng(step).standard_normal(shape)
    if name != "SparseAdam":
        return make(values)
    return pc.sparse_coo_tensor(pc.tensor([[step % 2]]), pc.from_numpy(values[:1]), shape)


def take_step(name: str, optimizer: Any, make: Any, step: int) -> None:
    params = optimizer.param_groups[0]["params"]
    grads = [gradient(name, make, step, tuple(p.shape)) for p in params]
    if name == "LBFGS":
        optimizer.step(lambda: (sum((p * p).sum() for p in params), [2 * p for p in params]))
    else:
        optimizer.step(grads=grads)


@pytest.mark.parametrize("library", LIBRARIES, ids=lambda pair: pair[0])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_our_optimizers_go_on_as_if_nothing_was_saved(name: str, library: Any) -> None:
    label, make = library
    if name == "SparseAdam" and label == "numpy":
        pytest.skip("SparseAdam takes plait's tensors only")
    values = [np.random.default_rng(9).standard_normal((4, 3)), np.full((2, 5), 0.5)]
    params = [make(value) for value in values]
    options = OPTIONS.get(name, {})
    optimizer = getattr(optim, name)(params, lr=0.1, **options)
    for step in range(3):
        take_step(name, optimizer, make, step)
    saved = copy.deepcopy(optimizer.state_dict())
    copies = [make(np.asarray(p)) for p in params]
    other = getattr(optim, name)(copies, lr=0.1, **options)
    other.load_state_dict(saved)
    assert states_of(other) == described(saved["state"])
    for step in range(3, 6):
        take_step(name, optimizer, make, step)
        take_step(name, other, make, step)
    assert described(params) == described(copies)
    assert states_of(other) == states_of(optimizer)


class Keeps(optim.Optimizer):
    """An optimizer of a program, with state of its own."""

    def __init__(self, params: Any) -> None:
        super().__init__(params, {"lr": 1.0})

    def step(self, closure: Any = None, **ignored: Any) -> None:  # type: ignore[override]
        pass


class KeepsMore(optim.Adam):
    """A subclass of one of ours that overrides its step."""

    def step(self, closure: Any = None, **ignored: Any) -> None:  # type: ignore[override]
        pass


def draw(rng: random.Random, make: Any, dtypes: list[Any], depth: int = 0) -> Any:
    """Return a value that a program might keep: a number, text, array, or a container."""
    kinds = ["number", "whole", "bool", "none", "text", "array", "list", "tuple", "dict", "pair"]
    kind = rng.choice(kinds[: 6 if depth > 2 else None])
    if kind == "array":
        shape = rng.choice([(), (2,), (4, 3), (1, 4, 3)])
        values = np.random.default_rng(rng.randrange(99)).integers(0, 9, shape)
        return make(values, dtype=rng.choice(dtypes))
    items = [draw(rng, make, dtypes, depth + 1) for _ in range(2)] if kind in kinds[6:] else []
    return {
        "number": rng.random(),
        "whole": rng.randrange(99),
        "bool": rng.random() < 0.5,
        "none": None,
        "text": "abc",
        "list": items,
        "tuple": tuple(items),
        "dict": dict(zip("ab", items, strict=False)),
        "pair": Pair(*items) if items else None,
    }[kind]


@pytest.mark.parametrize("library", LIBRARIES, ids=lambda pair: pair[0])
@pytest.mark.parametrize("kind", [Keeps, KeepsMore])
def test_state_of_programs_is_loaded_as_it_was_saved(kind: Any, library: Any) -> None:
    label, make = library
    dtypes = [np.float64] if label == "numpy" else [pc.float64]
    for seed in range(200):
        rng = random.Random(seed)
        state = {name: draw(rng, make, dtypes) for name in ("step", "kept", "more")}
        params = [make(np.ones((4, 3)))]
        optimizer = kind(params)
        optimizer.state[params[0]] = state
        saved = copy.deepcopy(optimizer.state_dict())
        other = kind(params)
        other.load_state_dict(saved)
        assert states_of(other) == described(saved["state"]), seed


STEPS: list[Any] = [2.5, -1, "seven", None, [1, 2.5], {"a": 0.5}]


@pytest.mark.parametrize("kind", [Keeps, KeepsMore])
@pytest.mark.parametrize("library", LIBRARIES, ids=lambda pair: pair[0])
def test_a_step_keeps_its_value_and_its_dtype(kind: Any, library: Any) -> None:
    label, make = library
    names = ("float64", "float32", "float16", "int64", "int32", "uint8", "bool")
    module = np if label == "numpy" else pc
    arrays = [make(1, dtype=getattr(module, name)) for name in names]
    arrays += [make([1, 2], dtype=module.int64), make(2.5, dtype=module.float32)]
    for value in (*STEPS, *arrays):
        params = [make(np.ones(3, np.float16))]
        optimizer = kind(params)
        optimizer.state[params[0]]["step"] = value
        other = kind(params)
        other.load_state_dict(optimizer.state_dict())
        assert described(other.state[params[0]]["step"]) == described(value)


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8", "bool", "float64", "float16"])
@pytest.mark.parametrize("parameter", ["float32", "float16", "int64"])
def test_other_state_takes_the_dtype_of_floating_parameters(parameter: str, dtype: str) -> None:
    param = pc.ones(3, dtype=getattr(pc, parameter))
    value = pc.tensor([0, 1, 1, 0], dtype=getattr(pc, dtype))
    optimizer = Keeps([param])
    optimizer.state[param] = {"kept": value, "many": [value, {"step": value}]}
    other = Keeps([param])
    other.load_state_dict(optimizer.state_dict())
    reference = other.state[param]
    expected = dtype if parameter == "int64" else parameter
    for loaded in (reference["kept"], reference["many"][0]):
        assert loaded.dtype is getattr(pc, expected)
        assert loaded.tolist() == [0, 1, 1, 0]
        assert loaded is not value
    assert reference["many"][1]["step"].dtype is value.dtype


def test_a_step_that_is_not_whole_is_an_error_of_our_step() -> None:
    for name in ("Adam", "Adafactor", "ASGD"):
        param = np.ones(3)
        optimizer = getattr(optim, name)([param])
        optimizer.step(grads=[np.ones(3)])
        optimizer.state[param]["step"] = 2.5
        before = param.copy()
        with pytest.raises(ValueError, match="'step' must be a whole number; got"):
            optimizer.step(grads=[np.ones(3)])
        assert (param == before).all()


def test_state_without_a_parameter_is_kept() -> None:
    param = np.ones(2)
    optimizer = Keeps([param])
    name = "".join(["glo", "bal"])
    optimizer.state[name]["count"] = 3
    optimizer.state["number"] = 4  # type: ignore[assignment]
    assert optimizer.state["global"] == {"count": 3}
    saved = optimizer.state_dict()
    assert saved["state"] == {"global": {"count": 3}, "number": 4}
    other = Keeps([param])
    other.load_state_dict(saved)
    assert other.state["global"] == {"count": 3}
    assert copy.deepcopy(other).state["number"] == 4
    del other.state["global"]
    assert "global" not in other.state


def test_setstate_is_called_with_the_loaded_state() -> None:
    calls = []

    class Upgrades(optim.SGD):
        def __setstate__(self, state: dict[str, Any]) -> None:
            super().__setstate__(state)
            calls.append(sorted(state))
            for group in self.param_groups:
                group.setdefault("warmup", 5)

    param = np.ones(2)
    optimizer = Upgrades([param])
    optimizer.load_state_dict(optim.SGD([param]).state_dict())
    assert calls == [["param_groups", "state"]]
    assert optimizer.param_groups[0]["warmup"] == 5
    assert copy.deepcopy(optimizer).param_groups[0]["warmup"] == 5
    assert len(calls) == 2


def test_a_program_may_replace_the_state() -> None:
    param = pc.ones(2)
    optimizer = optim.Adam([param], lr=0.1)
    optimizer.state = collections.defaultdict(dict)  # type: ignore[assignment]
    optimizer.step(grads=[pc.ones(2)])
    assert optimizer.state[param]["step"] == 1
    saved = optimizer.state_dict()
    assert list(saved["state"]) == [0]


def test_a_subclass_may_add_state_of_another_shape() -> None:
    param = np.ones((3, 2))
    optimizer = optim.Adam([param])
    optimizer.step(grads=[param])
    optimizer.state[param]["rows"] = np.arange(3.0)
    other = optim.Adam([param])
    other.load_state_dict(optimizer.state_dict())
    assert other.state[param]["rows"].tolist() == [0, 1, 2]
    optimizer.state[param]["exp_avg"] = np.arange(3.0)
    with pytest.raises(ValueError, match="shape"):
        other.load_state_dict(optimizer.state_dict())
