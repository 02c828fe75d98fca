import numpy as np
import pytest
from nn_reference import sigmoid

import plait_core as pc
import plait_nn as nn
from plait_nn.utils import rnn


def parts(layer, suffix="_l0"):
    own = dict(layer.named_parameters())
    return [
        own[name + suffix].detach().numpy()
        for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    ]


def lstm(x, w, u, b, c):
    h = cell = np.zeros((x.shape[1], u.shape[1]))
    outputs = []
    for step in x:
        i, f, g, o = np.split(step @ w.T + b + h @ u.T + c, 4, 1)
        cell = sigmoid(f) * cell + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(cell)
        outputs.append(h)
    return np.stack(outputs), h, cell


def gru(x, w, u, b, c):
    h = np.zeros((x.shape[1], u.shape[1]))
    outputs = []
    for step in x:
        left, right = np.split(step @ w.T + b, 3, 1), np.split(h @ u.T + c, 3, 1)
        r, z = (sigmoid(left[k] + right[k]) for k in (0, 1))
        h = (1 - z) * np.tanh(left[2] + r * right[2]) + z * h
        outputs.append(h)
    return np.stack(outputs), h


def test_lstm_computes_its_formula(draw):
    layer = nn.LSTM(4, 3, dtype=pc.float64)
    x = draw(5, 2, 4)
    output, (h, c) = layer(pc.tensor(x))
    for own, expected in zip((output, h[0], c[0]), lstm(x, *parts(layer)), strict=True):
        np.testing.assert_allclose(own.detach().numpy(), expected, atol=1e-12)


def test_gru_runs_both_ways_through_two_layers(draw):
    layer = nn.GRU(4, 3, 2, bidirectional=True, batch_first=True, dtype=pc.float64)
    x = draw(2, 5, 4)
    output, state = layer(pc.tensor(x))
    steps, last = x.transpose(1, 0, 2), []
    for number in range(2):
        ahead, h = gru(steps, *parts(layer, f"_l{number}"))
        back, k = gru(steps[::-1], *parts(layer, f"_l{number}_reverse"))
        steps = np.concatenate([ahead, back[::-1]], 2)
        last += [h, k]
    np.testing.assert_allclose(output.detach().numpy(), steps.transpose(1, 0, 2), atol=1e-12)
    np.testing.assert_allclose(state.detach().numpy(), np.stack(last), atol=1e-12)


@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
def test_packed_sequences_are_run_each_by_itself(draw, kind):
    layer = getattr(nn, kind)(4, 3, 2, bidirectional=True, dtype=pc.float64)
    sequences = [pc.tensor(draw(n, 4)) for n in (2, 5, 3)]
    output, last = layer(rnn.pack_sequence(sequences, enforce_sorted=False))
    states = last if kind == "LSTM" else (last,)
    for i, result in enumerate(rnn.unpack_sequence(output)):
        alone, own = layer(sequences[i])
        np.testing.assert_allclose(result.detach().numpy(), alone.detach().numpy(), atol=1e-12)
        for s, o in zip(states, own if kind == "LSTM" else (own,), strict=True):
            np.testing.assert_allclose(s[:, i].detach().numpy(), o.detach().numpy(), atol=1e-12)


@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
def test_a_cell_is_a_step_of_the_layer(draw, kind):
    layer = getattr(nn, kind)(4, 3, dtype=pc.float64)
    cell = getattr(nn, f"{kind}Cell")(4, 3, dtype=pc.float64)
    state = layer.state_dict()
    cell.load_state_dict({name.removesuffix("_l0"): value for name, value in state.items()})
    x = pc.tensor(draw(3, 2, 4))
    outputs, hx = layer(x)[0], None
    for step, output in zip(x, outputs, strict=True):
        hx = cell(step, hx)
        hidden = hx[0] if kind == "LSTM" else hx
        np.testing.assert_allclose(hidden.detach().numpy(), output.detach().numpy(), atol=1e-12)


def test_dropout_stands_between_layers():
    layer = nn.RNN(2, 3, 2, dropout=1.0)
    first = nn.RNN(2, 3, 2)
    first.load_state_dict(layer.state_dict())
    x = pc.randn(4, 1, 2)
    silent = nn.RNN(3, 3)
    own = {f"{n}_l0": layer.state_dict()[f"{n}_l1"] for n in ("weight_ih", "weight_hh")}
    own.update({f"{n}_l0": layer.state_dict()[f"{n}_l1"] for n in ("bias_ih", "bias_hh")})
    silent.load_state_dict(own)
    assert pc.allclose(layer(x)[0], silent(pc.zeros(4, 1, 3))[0])
    assert pc.allclose(layer.eval()(x)[0], first(x)[0])
    with pytest.warns(UserWarning, match="dropout option adds .* RNN has 1, and `dropout` 0.5"):
        nn.RNN(2, 3, dropout=0.5)


def test_padding_and_packing():
    arguments = [pc.tensor([1, 2]), pc.tensor([3, 4, 5])]
    assert rnn.pad_sequence(arguments, True, -1).tolist() == [[1, 2, -1], [3, 4, 5]]
    assert rnn.pad_sequence(arguments, True, 0, "left").tolist() == [[0, 1, 2], [3, 4, 5]]
    packed = rnn.pack_sequence(arguments, enforce_sorted=False)
    assert packed.data.tolist() == [3, 1, 4, 2, 5] and packed.unsorted_indices.tolist() == [1, 0]
    padded, lengths = rnn.pad_packed_sequence(packed, True, 9, 4)
    assert padded.tolist() == [[1, 2, 9, 9], [3, 4, 5, 9]] and lengths.tolist() == [2, 3]
    assert packed.double().data.dtype == pc.float64
    with pytest.raises(ValueError, match=r"`lengths` must fall unless .* got \[2, 3\]"):
        rnn.pack_sequence(arguments)
    with pytest.raises(ValueError, match=r"2 numbers from 1 to 3 .* got \[0, 3\]"):
        rnn.pack_padded_sequence(pc.zeros(3, 2), [0, 3])
    with pytest.raises(ValueError, match="`total_length` must be at least 3; got 2"):
        rnn.pad_packed_sequence(packed, total_length=2)


def test_errors_name_the_shapes():
    layer = nn.LSTM(4, 3)
    with pytest.raises(pc.ShapeError, match=r"LSTM: `input` .* 4; got shape \(2, 3, 5\)"):
        layer(pc.ones(2, 3, 5))
    state = (pc.zeros(1, 2, 3), pc.zeros(1, 1, 3))
    with pytest.raises(pc.ShapeError, match=r"LSTM: `hx` .* \(1, 2, 3\); got \(1, 1, 3\)"):
        layer(pc.ones(5, 2, 4), state)
    with pytest.raises(TypeError, match=r"LSTM: `hx` must be \(h_0, c_0\); got Tensor"):
        layer(pc.ones(5, 2, 4), state[0])
    with pytest.raises(pc.ShapeError, match=r"GRUCell: `hx` must have shape \(2, 3\); got \(3,\)"):
        nn.GRUCell(4, 3)(pc.ones(2, 4), pc.ones(3))
    with pytest.raises(ValueError, match="`proj_size` must be 0, or for LSTM less than"):
        nn.LSTM(4, 3, proj_size=3)
    with pytest.raises(ValueError, match="RNN: `nonlinearity` must be tanh or relu; got 'sin'"):
        nn.RNN(4, 3, nonlinearity="sin")


def composed(layer):
    """Run the layer step by step."""
    from plait_nn import _rnn
    from plait_nn._recurrence import STEPS, run

    def slowly(gates, state, weight, bias, sizes, reverse):
        inputs = gates.unbind(0) if sizes is None else gates.split(sizes)
        outputs, final = run(STEPS[layer.mode], inputs, state, weight, bias, None, reverse)
        return (pc.stack(outputs) if sizes is None else pc.cat(outputs)), final

    return pytest.MonkeyPatch.context(), _rnn, slowly


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_one_operator_equals_the_steps_and_their_gradients(draw, kind, packed):
    layer = getattr(nn, kind)(4, 3, 2, bidirectional=True, dtype=pc.float64)
    sequences = [pc.tensor(draw(n, 4)) for n in (5, 3, 3)]
    x = rnn.pack_sequence(sequences) if packed else pc.tensor(draw(5, 3, 4)).requires_grad_()

    def results():
        layer.zero_grad()
        output, last = layer(x)
        output = output.data if packed else output
        states = last if kind == "LSTM" else (last,)
        total = (output * output).sum() + sum((s * s * s).sum() for s in states)
        total.backward()
        result = [output.detach().numpy(), *(s.detach().numpy() for s in states)]
        return result + [p.grad.numpy() for p in layer.parameters()]

    fast = results()
    patched, module, slowly = composed(layer)
    with patched as patch:
        patch.setattr(module, "run_whole", slowly)
        slow = results()
    for own, expected in zip(fast, slow, strict=True):
        np.testing.assert_allclose(own, expected, atol=1e-12)


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
@pytest.mark.parametrize(("batch", "hidden"), [(1, 130), (33, 100), (100, 33), (60, 1)])
def test_blocks_of_units_and_sequences(draw, kind, batch, hidden):
    layer = getattr(nn, kind)(5, hidden, bidirectional=True, dtype=pc.float64)
    lengths = [1 + 3 * (batch - i) // batch for i in range(batch)]
    x = rnn.pack_sequence([pc.tensor(draw(n, 5)) for n in lengths])

    def results():
        layer.zero_grad()
        output, last = layer(x)
        states = last if kind == "LSTM" else (last,)
        (output.data.sin().sum() + sum((s * s).sum() for s in states)).backward()
        return [output.data.detach().numpy()] + [p.grad.numpy() for p in layer.parameters()]

    before = pc.get_num_threads()
    try:
        pc.set_num_threads(1)
        alone = results()
        pc.set_num_threads(3)
        together = results()
    finally:
        pc.set_num_threads(before)
    patched, module, slowly = composed(layer)
    with patched as patch:
        patch.setattr(module, "run_whole", slowly)
        slow = results()
    for own, other, expected in zip(alone, together, slow, strict=True):
        np.testing.assert_array_equal(own, other)
        np.testing.assert_allclose(own, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_gradients_of_gradients_and_tangents(draw, kind):
    autograd = pytest.importorskip("plait_autograd")
    layer = getattr(nn, kind)(2, 3, dtype=pc.float64)
    x = pc.tensor(draw(4, 2, 2)).requires_grad_()
    assert autograd.gradgradcheck(lambda x: layer(x)[0], (x,))
    tangent = pc.tensor(draw(4, 2, 2))
    with autograd.forward_ad.dual_level():
        dual = autograd.forward_ad.make_dual(x.detach(), tangent)
        result = autograd.forward_ad.unpack_dual(layer(dual)[0]).tangent
    step = 1e-6
    ahead, back = (layer(x.detach() + sign * step * tangent)[0].detach() for sign in (1, -1))
    expected = ((ahead - back) / (2 * step)).numpy()
    np.testing.assert_allclose(result.detach().numpy(), expected, atol=1e-8)


def test_the_gradient_of_a_bias_does_not_lose_bits_with_the_number_of_rows():
    layer = nn.GRU(1, 1)
    for name, parameter in layer.named_parameters():
        parameter.detach().fill_(0.3 if name.startswith("bias") else 0.0)
    gradients = []
    for rows in (1, 30_000):
        layer.zero_grad()
        layer(pc.zeros(1, rows, 1))[0].sum().backward()
        gradients.append(layer.bias_hh_l0.grad.numpy())
    np.testing.assert_allclose(gradients[1], 30_000 * gradients[0], rtol=1e-6)
