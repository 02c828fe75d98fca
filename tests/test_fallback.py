"""The fallback to the CPU, on a device that has not one kernel (bare_device.c)."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from plugins import compiled

import plait
import plait_abi


@pytest.fixture(scope="module", autouse=True)
def bare() -> Iterator[ctypes.CDLL]:
    path = compiled(Path(__file__).with_name("bare_device.c"))
    plait_abi.load(str(path))
    yield ctypes.CDLL(str(path))
    gc.collect()
    plait_abi.detach("bare-device")


@pytest.fixture
def declined(bare: ctypes.CDLL) -> Iterator[None]:
    """The device has kernels of what copies are made of, which decline all dtypes."""
    undo = [ctypes.c_uint64() for _ in range(5)]
    for name, number in zip(("copy_", "dense", "cast", "clone", "fill_"), undo, strict=True):
        assert bare.bare_device_decline(name.encode(), ctypes.byref(number)) == 0
    yield
    for number in undo:
        assert bare.bare_device_retract(number) == 0


@pytest.fixture(autouse=True)
def off() -> Iterator[None]:
    yield
    plait.use(fallback=None)


def counts() -> dict[str, int]:
    lines = plait.report()
    return {r.name: r.calls for r in lines if r.kind == "fallback" and r.device == "bare"}


def refused(call: Any) -> bool:
    try:
        call()
    except NotImplementedError as error:
        assert "bare" in str(error)
        return True
    return False


def test_it_is_off_and_can_be_turned_off_again() -> None:
    x = plait.tensor([1.0, 2.0]).to("bare")
    assert refused(lambda: x + 1)
    for names in ("bare", ["cuda", "bare"], ("bare",), iter(["bare"])):
        plait.use(fallback=names)
        assert (x + 1).cpu().tolist() == [2.0, 3.0]
        plait.use(fallback=None)
        assert refused(lambda: x + 1)
    plait.use(fallback="bare")
    plait.use(fallback=["cuda"])  # these and no others
    assert refused(lambda: x + 1)


def test_a_choice_of_components_leaves_it_as_it_is() -> None:
    x = plait.tensor([1.0, 2.0]).to("bare")
    plait.use(fallback="bare")
    plait.use(nn="plait_nn")
    assert (x * 2).cpu().tolist() == [2.0, 4.0]


def test_the_report_counts_it() -> None:
    x = plait.tensor([[1.0, 2.0]]).to("bare")
    plait.use(fallback="bare")
    before = counts()
    for _ in range(3):
        x = x.exp().log()
    x.sum()
    after = counts()
    changes = {name: after[name] - before.get(name, 0) for name in ("exp", "log", "sum")}
    assert changes == {"exp": 3, "log": 3, "sum": 1}
    line = next(line for line in str(plait.report()).splitlines() if " exp on bare " in line)
    assert line.split()[0] == "fallback" and line.endswith(f"{after['exp']} calls on the CPU")


def test_copies_with_strides_need_no_kernel() -> None:
    here = plait.arange(12.0).reshape(3, 4)
    x = here.to("bare")
    for view in (lambda t: t.t(), lambda t: t[1:, ::2], lambda t: t[2], lambda t: t.flatten()[::3]):
        assert view(x).cpu().tolist() == view(here).tolist()
        assert view(x).to("cpu", plait.int32).tolist() == view(here).int().tolist()
        for source in (view(here) * 2, plait.ones((), dtype=plait.int64)):
            target = here.clone()
            view(x).copy_(source)
            view(target).copy_(source)
            assert x.cpu().tolist() == target.tolist()
            x.copy_(here)


def test_copies_whose_kernels_decline(declined: None) -> None:
    plait.use(fallback="bare")
    test_copies_with_strides_need_no_kernel()
    here = plait.arange(12.0).reshape(3, 4)
    x, y = here.to("bare"), plait.zeros(4, 3, dtype=plait.float16, device="bare")
    y.copy_(x.t())  # on the device, with strides and another dtype
    assert y.cpu().tolist() == here.t().tolist()
    x[:, 1:].fill_(7)
    assert x.t().clone().contiguous().cpu().tolist() == x.cpu().t().tolist()
    assert x.cpu()[:, 1:].tolist() == [[7.0] * 3] * 3
    plait.use(fallback=None)
    assert refused(lambda: y.copy_(x.t()))


def test_tensors_made_of_nothing_on_the_default_device() -> None:
    plait.use(fallback="bare")
    with plait.device("bare"):
        result = [plait.zeros(2), plait.arange(2), plait.rand(2), plait.hann_window(2)]
        model = plait.nn.Linear(2, 3)
    assert {each.device.type for each in [*result, *model.parameters()]} == {"bare"}
    model(plait.ones(4, 2, device="bare")).sum().backward()
    assert model.bias.grad.cpu().tolist() == [4.0, 4.0, 4.0]


@pytest.mark.parametrize(
    ("names", "error"),
    [
        ("cpu", ValueError),
        ("meta", ValueError),
        ("bare:0", ValueError),
        ("gpu", ValueError),
        ("", ValueError),
        (["bare", "gpu"], ValueError),
        (["bare", 3], TypeError),
        (3, TypeError),
    ],
)
def test_bad_names_change_nothing(names: Any, error: type[Exception]) -> None:
    x = plait.tensor([1.0]).to("bare")
    with pytest.raises(error, match="use: `fallback` must"):
        plait.use(fallback=names)
    assert refused(lambda: x + 1)


def test_a_bad_component_leaves_the_fallback() -> None:
    x = plait.tensor([1.0]).to("bare")
    with pytest.raises(LookupError):
        plait.use(fallback="bare", optimiser="plait_optim")
    assert refused(lambda: x + 1)


def test_an_error_lists_dtypes_where_there_are_tensors() -> None:
    with pytest.raises(NotImplementedError, match=r"randperm: no kernel for bare:0 is inst"):
        plait.randperm(2, device="bare")
    x = plait.tensor([1.0]).to("bare")
    with pytest.raises(
        NotImplementedError, match=r"sin: no kernel for bare:0 and dtypes \(float32"
    ):
        x.sin()


def test_an_error_says_which_dtypes_the_kernels_declined(bare: ctypes.CDLL) -> None:
    x, undo = plait.tensor([1.0]).to("bare"), ctypes.c_uint64()
    plait.equal(x, x)  # needs no kernel
    for name, call, dtypes in (
        ("exp", x.exp, "float32 -> float32"),
        ("cast", lambda: x.to(plait.float64), "float32 -> float64"),
        ("randperm", lambda: plait.randperm(1, device="bare"), "-> int64"),
    ):
        assert bare.bare_device_decline(name.encode(), ctypes.byref(undo)) == 0
        text = rf"{name}: the kernels for bare:0 declined the call, with dtypes \({dtypes}\); plait"
        with pytest.raises(NotImplementedError, match=text):
            call()
        assert bare.bare_device_retract(undo) == 0


def test_a_device_without_streams() -> None:
    stream, event = plait.Stream("bare"), plait.Event("bare")
    assert stream == plait.accelerator.current_stream("bare") and stream.stream_id == 0
    with stream:
        event.record()
    stream.wait_event(event)
    stream.wait_stream(plait.Stream("bare"))
    assert stream.query() and event.query()
    x = plait.ones(2).pin_memory("bare")  # any memory of the host will do
    assert x.is_pinned() and x.to("bare", non_blocking=True).cpu().tolist() == [1.0, 1.0]
    capsule = plait.ones(2).to("bare").__dlpack__(stream=0)
    assert plait.from_dlpack(capsule).device.type == "bare"
    timed = [plait.Event("bare", enable_timing=True) for _ in range(2)]
    for each in timed:
        each.record()
    with pytest.raises(NotImplementedError, match="bare:0 has no clock"):
        timed[0].elapsed_time(timed[1])
    with pytest.raises(RuntimeError, match="the allocator `bare` counts nothing"):
        plait.accelerator.memory_allocated("bare")
