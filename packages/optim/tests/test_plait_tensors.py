"""Plait's tensors: state of the same type, layouts, versions after writes by every means."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plait_core as pc
import plait_optim as optim


def tensor(*shape: int, seed: int = 0) -> Any:
    return pc.from_numpy(np.random.default_rng(seed).standard_normal(shape).astype(np.float32))


OPTIONS: dict[str, dict[str, Any]] = {
    "SGD": {"momentum": 0.9},
    "Adam": {"amsgrad": True},
    "AdamW": {"amsgrad": True},
    "RMSprop": {"momentum": 0.9, "centered": True},
    "Adagrad": {"initial_accumulator_value": 0.5},
    **{name: {} for name in ("ASGD", "Adadelta", "Adamax", "NAdam", "RAdam", "Rprop")},
}


@pytest.mark.parametrize("name", OPTIONS)
def test_the_same_as_on_numpy(name: str) -> None:
    options = OPTIONS[name]
    tensors = [tensor(3, 4), tensor(5), tensor(4, 3).t(), tensor(2, 3, 4, 5).permute(0, 3, 1, 2)]
    arrays = [t.numpy().copy() for t in tensors]
    ours = getattr(optim, name)(tensors, lr=0.1, **options)
    theirs = getattr(optim, name)(arrays, lr=0.1, **options)
    for step in range(3):
        grads = [np.float32(step + 1) * np.ones(a.shape, np.float32) for a in arrays]
        ours.step(grads=[pc.from_numpy(g) for g in grads])
        theirs.step(grads=grads)
    for t, a in zip(tensors, arrays, strict=True):
        np.testing.assert_array_equal(t.numpy(), a)


def test_state_is_a_tensor_in_the_layout_of_its_parameter() -> None:
    weight = tensor(2, 3, 4, 5).permute(0, 3, 1, 2)
    optimizer = optim.Adam([weight])
    optimizer.step(grads=[pc.ones_like(weight)])
    average = optimizer.state[weight]["exp_avg"]
    assert isinstance(average, pc.Tensor)
    assert average.dtype == weight.dtype
    assert average.stride() == weight.stride()
    assert optimizer.state_dict()["state"][0]["exp_avg"] is average


def test_state_goes_between_libraries() -> None:
    t = tensor(3)
    a = t.numpy().copy()
    first, second = optim.Adam([t], lr=0.1), optim.Adam([a], lr=0.1)
    first.step(grads=[pc.ones(3)])
    second.load_state_dict(first.state_dict())
    assert isinstance(second.state[a]["exp_avg"], np.ndarray)
    first.load_state_dict(second.state_dict())
    assert isinstance(first.state[t]["exp_avg"], pc.Tensor)
    a[:] = t.numpy()
    second.step(grads=[np.ones(3, np.float32)])
    first.step(grads=[pc.ones(3)])
    np.testing.assert_array_equal(t.numpy(), a)


def roads(t: Any) -> dict[str, Any]:
    class OnlyDLPack:
        def __dlpack__(self, **options: Any) -> Any:
            return t.__dlpack__(**options)

        def __dlpack_device__(self) -> Any:
            return t.__dlpack_device__()

    return {
        "tensor": t,
        "view": t[1:],
        "DLPack": OnlyDLPack(),
        "NumPy over DLPack": np.from_dlpack(t),
        "part of NumPy over DLPack": np.from_dlpack(t)[::-2],
    }


@pytest.mark.parametrize("road", sorted(roads(pc.ones(3))))
def test_a_step_moves_the_version_on(road: str) -> None:
    t = pc.ones(4)
    array = roads(t)[road]
    before = t._version
    shape = (3,) if road == "view" else (2,) if road.startswith("part") else (4,)
    optim.SGD([array], lr=1.0).step(grads=[np.ones(shape, np.float32)])
    assert t._version == before + 1
    assert float(t.sum().item()) == 4 - shape[0]


def test_read_only_parameters_are_refused() -> None:
    array = np.ones(3, np.float32)
    array.flags.writeable = False
    with pytest.raises(ValueError, match=r"params.*read-only"):
        optim.Adam([array]).step(grads=[np.ones(3, np.float32)])


@pytest.fixture
def threads() -> Any:
    before = pc.get_num_threads()
    yield pc.set_num_threads
    pc.set_num_threads(before)


@pytest.mark.parametrize("layout", ["flat", "strided"])
def test_results_do_not_depend_on_the_number_of_threads(threads: Any, layout: str) -> None:
    shapes = [(500, 333), (7,), (70_000,), (300, 40)]
    results = []
    for count in (1, 2, 3):
        threads(count)
        params = [tensor(*shape, seed=i) for i, shape in enumerate(shapes)]
        if layout == "strided":
            params = [p.t() if p.ndim == 2 else p for p in params]
        optimizer = optim.AdamW(params, lr=0.1)
        for step in range(3):
            optimizer.step(grads=[tensor(*p.shape, seed=step) for p in params])
        results.append([p.numpy().copy() for p in params])
    for other in results[1:]:
        for a, b in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(a, b)


def test_parameters_that_share_memory_are_stepped_one_after_the_other(threads: Any) -> None:
    threads(3)
    whole = pc.zeros(100_000)
    optimizer = optim.SGD([whole, whole[50_000:]], lr=1.0)
    for _ in range(20):
        optimizer.step(grads=[pc.ones(100_000), pc.ones(50_000)])
    assert set(whole[:50_000].numpy().tolist()) == {-20.0}
    assert set(whole[50_000:].numpy().tolist()) == {-40.0}
