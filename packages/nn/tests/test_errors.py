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


def test_a_note_says_what_to_do_about_another_dtype():
    with pytest.raises(pc.DTypeError) as caught:
        nn.Linear(3, 2)(pc.ones(1, 3, dtype=pc.bfloat16))
    end = "; its parameters are float32: cast the input with input.to(plait.float32), or the module"
    assert not has_notes or end in notes(caught.value)[0]


LAYERS = {
    "Linear": (lambda: nn.Linear(3, 4), (2, 3)),
    "Conv1d": (lambda: nn.Conv1d(3, 4, 3), (2, 3, 8)),
    "Conv2d": (lambda: nn.Conv2d(3, 4, 3), (2, 3, 8, 8)),
    "Conv3d": (lambda: nn.Conv3d(3, 4, 3), (2, 3, 8, 8, 8)),
    "ConvTranspose2d": (lambda: nn.ConvTranspose2d(3, 4, 3), (2, 3, 8, 8)),
    "LSTM": (lambda: nn.LSTM(3, 4), (5, 2, 3)),
    "GRU": (lambda: nn.GRU(3, 4), (5, 2, 3)),
    "RNN": (lambda: nn.RNN(3, 4), (5, 2, 3)),
    "LayerNorm": (lambda: nn.LayerNorm(3), (2, 3)),
    "GroupNorm": (lambda: nn.GroupNorm(1, 3), (2, 3, 8, 8)),
    "InstanceNorm2d": (lambda: nn.InstanceNorm2d(3), (2, 3, 8, 8)),
    "MaxPool2d": (lambda: nn.MaxPool2d(2), (2, 3, 8, 8)),
    "AdaptiveAvgPool2d": (lambda: nn.AdaptiveAvgPool2d(1), (2, 3, 8, 8)),
    "GLU": (lambda: nn.GLU(3), (2, 4)),
    "PReLU": (lambda: nn.PReLU(5), (2, 3)),
} | {
    f"BatchNorm2d and {kind.__name__}": (
        lambda kind=kind: nn.Sequential(nn.Conv2d(3, 3, 1), nn.BatchNorm2d(3), kind()),
        (2, 3, 8, 8),
    )
    for kind in (nn.ReLU, nn.ReLU6, nn.LeakyReLU, nn.SiLU, nn.Hardswish)
}
NAMES = {*dir(pc), *dir(nn), *dir(nn.functional)} - {"batch_norm_activation", "native_dropout"}


@pytest.mark.parametrize("name", LAYERS)
def test_errors_name_what_was_called(name):
    make, shape = LAYERS[name]
    shapes = shape, (*shape, 2), shape[:-1], (1, shape[1], *(1 for _ in shape[2:]))
    shapes += (shape[0], shape[1] + 1, *shape[2:]), (0, *shape[1:])
    dtypes = pc.float32, pc.float64, pc.bfloat16, pc.int64, pc.bool, pc.complex64
    names = set()
    for part in ("whole", "tail"):
        for training in (True, False):
            module = make().train(training)
            if part == "tail" and isinstance(module, nn.Sequential):
                module = module[1:]
            for sizes in shapes:
                for dtype in dtypes:
                    try:
                        module(pc.zeros(sizes, dtype=dtype))
                    except Exception as error:
                        names.add(str(error).partition(":")[0])
    assert names and names <= NAMES, names


def test_a_missing_module_is_where_the_text_says():
    with pytest.raises(AttributeError, match="DataParallel is plait"):
        nn.parallel  # noqa: B018
    assert nn.DataParallel
