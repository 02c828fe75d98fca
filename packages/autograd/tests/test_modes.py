"""no_grad, enable_grad, set_grad_enabled and inference_mode."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import plait_autograd as pa
import plait_core as pc


def recorded() -> bool:
    return (pc.ones(1, requires_grad=True) * 2).requires_grad


def test_nesting():
    assert recorded()
    with pa.no_grad():
        assert not recorded() and not pa.is_grad_enabled()
        with pa.enable_grad():
            assert recorded()
            with pa.set_grad_enabled(False):
                assert not recorded()
            assert recorded()
        assert not recorded()
    assert recorded()


@pytest.mark.parametrize("mode", [pa.no_grad, pa.no_grad(), pa.inference_mode(), pa.inference_mode])
def test_decorators(mode):
    @mode
    def function(a: int, b: int = 0) -> tuple[bool, int]:
        """Its text."""
        return recorded(), a + b

    assert function(1, b=2) == (False, 3)
    assert function.__name__ == "function" and function.__doc__ == "Its text."
    assert recorded()


def test_a_mode_ends_with_an_exception():
    with pytest.raises(KeyError), pa.no_grad():
        raise KeyError
    assert recorded()


def test_generators_hold_the_mode_only_while_they_run():
    closed = []

    @pa.no_grad()
    def steps():
        try:
            got = yield recorded()
            try:
                yield got, recorded()
            except ValueError:
                yield "caught", recorded()
        finally:
            closed.append(recorded())
        return "end"

    generator = steps()
    assert next(generator) is False and recorded()
    assert generator.send(5) == (5, False) and recorded()
    assert generator.throw(ValueError()) == ("caught", False) and recorded()
    with pytest.raises(StopIteration) as end:
        next(generator)
    assert end.value.value == "end" and closed == [False]


def test_set_grad_enabled_acts_at_once():
    pa.set_grad_enabled(False)
    try:
        assert not recorded()
    finally:
        pa.set_grad_enabled(True)
    assert recorded()

    @pa.set_grad_enabled(False)
    def function():
        return recorded()

    assert recorded() and not function()


def test_inference_mode_can_be_off():
    with pa.inference_mode(False):
        assert recorded()
    with pa.inference_mode():
        assert not recorded()
        with pa.inference_mode(False):  # as in PyTorch
            assert recorded()
        assert not recorded()
    with pa.no_grad():
        assert pa.inference_mode(False)(recorded)()
        assert not recorded()


def test_modes_belong_to_their_thread():
    calls = []
    with pa.no_grad():
        thread = threading.Thread(target=lambda: calls.append(recorded()))
        thread.start()
        thread.join()
    assert calls == [True]


def test_one_object_may_be_entered_again():
    mode = pa.no_grad()
    with mode:
        with mode:
            assert not recorded()
        assert not recorded()
    assert recorded()


def test_without_recording_arrays_share_memory_with_tensors_that_require_grad() -> None:
    x = pc.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match=r"numpy: the tensor must not require grad"):
        x.numpy()
    with pa.no_grad():
        shared = x.numpy()
        assert np.asarray(x).tolist() == [1, 1]
        with pytest.raises(BufferError, match="must not require grad"):  # as in PyTorch
            np.from_dlpack(x)
    shared[0] = 5
    assert x.tolist() == [5, 1] and x.requires_grad
