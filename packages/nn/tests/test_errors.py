"""An exception that leaves a module says where in the model it happened."""

import sys

import pytest

import plait_core as pc
import plait_nn as nn

has_notes = sys.version_info >= (3, 11)


def notes(error):
    return [note for note in getattr(error, "__notes__", []) if note.startswith("in module")]


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(2, 2), nn.Linear(3, 2)])

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = Block()

    def forward(self, x):
        return self.block(x)


def test_the_note_holds_the_path_and_the_layer():
    with pytest.raises(RuntimeError) as caught:
        Net()(pc.ones(1, 2))
    expected = "in module Net.block.layers.1: Linear(in_features=3, out_features=2, bias=True)"
    assert notes(caught.value) == ([expected] if has_notes else [])


def test_a_lone_module_is_named_too():
    with pytest.raises(RuntimeError) as caught:
        nn.Linear(3, 2)(pc.ones(1, 2))
    expected = "in module Linear: Linear(in_features=3, out_features=2, bias=True)"
    assert notes(caught.value) == ([expected] if has_notes else [])


def test_a_module_that_is_no_child_is_named_as_such():
    class Outside(nn.Module):
        def forward(self, x):
            return other(x)

    other = Net()
    with pytest.raises(RuntimeError) as caught:
        Outside()(pc.ones(1, 2))
    if has_notes:
        assert notes(caught.value)[0].startswith("in module Outside > Net.block.layers.1: Linear(")
    else:
        assert notes(caught.value) == []


def test_any_exception_passes_with_its_text():
    class Fails(nn.Module):
        def forward(self):
            raise KeyError("key")

    with pytest.raises(KeyError, match="'key'") as caught:
        Fails()()
    assert notes(caught.value) == (["in module Fails: Fails()"] if has_notes else [])


def test_a_broken_repr_hides_nothing():
    class Fails(nn.Module):
        def extra_repr(self):
            raise TypeError("from repr")

        def forward(self):
            raise KeyError("from forward")

    with pytest.raises(KeyError, match="from forward"):
        Fails()()


def test_an_exception_with_slots_passes():
    class BareError(Exception):
        __slots__ = ()

    class Fails(nn.Module):
        def forward(self):
            raise BareError

    with pytest.raises(BareError):
        nn.Sequential(Fails()).get_submodule("0")()


def test_endless_recursion_ends():
    class Loop(nn.Module):
        def forward(self):
            return self()

    with pytest.raises(RecursionError):
        Loop()()
