import numpy as np
import pytest

import plait_core as pc
import plait_nn as nn
from plait_nn import functional as F

MODES = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("pad", [(1, 2), (0, 3, 2, 0), (1, 1, 1, 1), (0, 0)])
def test_modes(draw, mode, pad):
    x = draw(2, 3, 4, 5)
    widths = [(0, 0)] * 4
    for i in range(len(pad) // 2):
        widths[3 - i] = (pad[2 * i], pad[2 * i + 1])
    result = F.pad(pc.tensor(x), pad, mode=mode).numpy()
    np.testing.assert_array_equal(result, np.pad(x, widths, mode=MODES[mode]))


def test_value_and_cutting(draw):
    x = draw(4, 5)
    result = F.pad(pc.tensor(x), (-1, 2), value=7.0).numpy()
    np.testing.assert_array_equal(result, np.pad(x[:, 1:], ((0, 0), (0, 2)), constant_values=7.0))
    np.testing.assert_array_equal(F.pad(pc.tensor(x), (-1, -2)).numpy(), x[:, 1:3])


def test_gradient_goes_back_to_the_source():
    x = pc.tensor([1.0, 2.0, 3.0]).requires_grad_()
    (F.pad(x, (1, 1), mode="reflect") * pc.arange(5.0)).sum().backward()
    assert x.grad.tolist() == [1.0, 2.0 + 0.0 + 4.0, 3.0]
    x.grad = None
    (F.pad(x, (1, 1)) * pc.arange(5.0)).sum().backward()
    assert x.grad.tolist() == [1.0, 2.0, 3.0]


def test_errors():
    x = pc.ones(2, 3)
    with pytest.raises(ValueError, match=r"two ints for each of at most 2 dimensions .*\(2, 3\)"):
        F.pad(x, (1, 1, 1))
    with pytest.raises(ValueError, match="`mode` must be one of constant, reflect"):
        F.pad(x, (1, 1), mode="mirror")
    with pytest.raises(ValueError, match="'reflect' can put at most 2 elements at dim 1"):
        F.pad(x, (3, 0), mode="reflect")
    with pytest.raises(ValueError, match=r"\(-2, -2\) cuts more than dim 1"):
        F.pad(x, (-2, -2))


@pytest.mark.parametrize("mode", ["reflect", "replicate"])
@pytest.mark.parametrize("pad", [(2, -4), (-3, 1), (-1, 3), (3, -6), (1, -5)])
def test_what_is_cut_off_is_repeated_all_the_same(mode, pad):
    before, after = pad
    whole = np.pad(np.arange(4.0), (max(before, 0), max(after, 0)), mode=MODES[mode])
    expected = whole[max(-before, 0) : len(whole) - max(-after, 0)]
    x = pc.arange(4.0).requires_grad_()
    result = F.pad(x, pad, mode=mode)
    np.testing.assert_array_equal(result.detach().numpy(), expected)
    result.sum().backward()
    assert x.grad.tolist() == [float((expected == i).sum()) for i in range(4)]


def test_circular_cuts_first():
    x = pc.tensor([1, 2, 3, 4])
    assert F.pad(x, (-1, 2), mode="circular").tolist() == [2, 3, 4, 2, 3]
    assert F.pad(x, (1, -2), mode="circular").tolist() == [2, 1, 2]


KINDS = {"Reflection": "reflect", "Replication": "edge", "Circular": "wrap", "Zero": "constant"}


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_modules(draw, kind, dims):
    x = draw(*(2, 3, 4, 5, 3)[: dims + 2])
    pad = (1, 2, 0, 1, 2, 0)[: 2 * dims]
    widths = [(0, 0)] * 2 + [(pad[2 * i], pad[2 * i + 1]) for i in reversed(range(dims))]
    layer = getattr(nn, f"{kind}Pad{dims}d")(pad)
    result = layer(pc.tensor(x)).numpy()
    np.testing.assert_array_equal(result, np.pad(x, widths, mode=KINDS[kind]))


def test_modules_check_their_arguments():
    assert nn.ConstantPad1d(1, 2.5)(pc.ones(1, 1, 1)).tolist() == [[[2.5, 1.0, 2.5]]]
    with pytest.raises(ValueError, match=r"ZeroPad2d: `padding` must be one int or 4; got \(1, 2"):
        nn.ZeroPad2d((1, 2))
    with pytest.raises(ValueError, match=r"ReflectionPad1d: .* 2 or 3 dim.* got shape \(3,\)"):
        nn.ReflectionPad1d(1)(pc.ones(3))
