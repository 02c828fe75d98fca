"""What reads values works for tensors of a device whose memory the host cannot touch.

Each expression is evaluated on the CPU and on the pretend device of examples/plugins/device.c, and
must give the same values. A stray read of the device's memory would end the process.
"""

from __future__ import annotations

import copy
import ctypes
import io
import math
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import plait
import plait.nn.functional as F
import plait_core as pc
from plait import nn
from plait.nn.utils import rnn
from plait.utils.data import DataLoader, TensorDataset


@pytest.fixture(scope="module")
def library(device: ctypes.CDLL, device_library: Path) -> Path:
    return device_library


@pytest.fixture
def waits(library: Path) -> Callable[[], int]:
    """A function that returns how often the host has waited for a device."""
    get = ctypes.CDLL(str(library)).example_device_get
    get.restype = ctypes.c_int64
    return lambda: get(b"waits") + get(b"copies")


def ramp(device: str, *shape: int) -> pc.Tensor:
    """Return numbers from -1 to 1."""
    values = np.linspace(-1, 1, math.prod(shape), dtype=np.float32).reshape(shape)
    return plait.tensor(values, device=device)


def plain(value: Any, device: str) -> Any:
    """Return the values of tensors in nested containers, after a check of their device."""
    if isinstance(value, pc.SparseTensor):
        value = value.to_dense()
    if isinstance(value, pc.Tensor):
        assert value.device.type == device
        return value.dtype.name, value.tolist()
    if isinstance(value, dict):
        return {key: plain(each, device) for key, each in value.items()}
    return [plain(each, device) for each in value] if isinstance(value, (tuple, list)) else value


def written(x: pc.Tensor, key: Any, value: Any) -> pc.Tensor:
    x = x.clone()
    x[key] = value
    return x


def stored(value: Any) -> io.BytesIO:
    file = io.BytesIO()
    plait.save(value, file)
    file.seek(0)
    return file


def seeded(result: Callable[[], Any]) -> Any:
    plait.manual_seed(3)
    return result()


# x: float32 (3, 4), m: a mask of its shape, i: indices, d: the device's name, all on the device
SAME = """
x[0, 1].item()
x.tolist(), x.T.tolist(), x[:0].tolist(), x.bfloat16().tolist()
bool(x[0, 0] < 0), int(x[1, 1] * 10), float(x[1, 1]), complex(x[1, 1])
[1, 2, 3][i[1]], list(range(i[2])), x.roll(int(i[1]))
math.sqrt(x[2, 3]), math.floor(x[0, 1]), x[0, 0].is_nonzero()
f"{x[0, 0]:.3f} {i[2]:d} {x[0, 0]}"
repr(x).replace(", device='ext:0'", ""), repr(x.bfloat16()).replace(", device='ext:0'", "")
1 if x.sum() > 5 else 2
1.0 in x, x[0, 0] in x, 7.0 in x
[row.tolist() for row in x], [float(v) for v in x[0]], len(x)
plait.full((2,), x[0, 0], device=d), plait.full((2,), i[1], device=d)
plait.tensor(x), plait.tensor(i, dtype=plait.float64)
plait.linspace(x[0, 0], x[2, 3], 3, device=d), plait.arange(i[2], device=d)
plait.zeros(i[1], i[2], device=d), x.clamp(min=x[0, 1]), x ** i[1], x.lerp(x * 2, x[0, 0])
x.clone().fill_(x[0, 1]), x.index_fill(0, i[:2], x[0, 0]), x.masked_fill(m, plait.tensor(3.0))
x[m], x[m.cpu()], x[m[:, 0]], x[m[:, 0], 1], x[True], x[False], x[x.sum() < 100]
x[i], x[i.cpu()], x[i, i], x[i, i.cpu()], x[[0, 2]], x[np.array([0, 2])], x[i[1]], x[-i[:2]]
x[None, i], x[1:, i], x[i[0]:i[2]]
written(x, i, 5.0), written(x, m, 0), written(x, m.cpu(), 0), written(x, True, 7.0)
written(x, i, x.cpu()[0]), written(x, 0, x.cpu()[1]), written(x, slice(0, 2), x.cpu()[:2] * 2)
written(x, 0, [1, 2, 3, 4]), written(x, i, [1, 2, 3, 4]), written(x, i, np.ones(4, np.float32))
written(x, i, plait.tensor(2.0)), written(x, m, x[0, 0]), written(x, m, x[m] * 2)
written(x, (0, 0), x[1, 1]), written(x, (0, 0), x.cpu()[1, 1]), written(x, m[:, 0], 0.5)
x + plait.tensor(2.0), plait.tensor(2.0) + x, x.clone().add_(plait.tensor(2.0))
plait.where(m, x, 0), plait.where(m, x, plait.tensor(3.0)), plait.where(m)
m.nonzero(), m.nonzero(as_tuple=True), plait.argwhere(m), plait.masked_select(x, m)
plait.unique(i, return_inverse=True, return_counts=True), plait.unique_consecutive(i)
plait.repeat_interleave(x, 2, dim=0), plait.repeat_interleave(x, i[:3], dim=0)
plait.bincount(i), plait.histc(x, 4), plait.histogram(x, 4), plait.histogram(x, [-1.0, 0.0, 1.0])
plait.histogramdd(x[:, :2], bins=[2, 2]), plait.quantile(x, 0.5), x.masked_scatter(m, x.clone())
plait.equal(x, x.clone()), plait.allclose(x, x + 1), plait.testing.assert_close(x, x.clone())
plait.einsum("ij,kj->ik", x, x), plait.linalg.matrix_rank(x), plait.linalg.det(x[:, :3])
x.clone().apply_(lambda v: v * 2), x.clone().map_(x, lambda a, b: a + b)
x.untyped_storage().tolist(), x.untyped_storage()[3], x.numpy(force=True).tolist()
x.to_sparse(), x.to_sparse().indices(), F.one_hot(i), F.one_hot(i, 5)
plait.zeros(2).type_as(x), x.clone().copy_(x.cpu() * 2), x.clone().resize_(8)
x.clone().resize_(5, 4)[:3], x.clone().resize_(2)
copy.deepcopy(x), copy.copy(x), pickle.loads(pickle.dumps(x)), pickle.loads(pickle.dumps([x, x[0]]))
plait.load(stored(x)), plait.load(stored(x.cpu()), map_location=d)
plait.load(stored({"x": x.T, "i": i}), map_location={"cpu": d}), plait.load(stored(x.to_sparse()))
plait.load(stored([x, x[0], x.T]))[0].add_(1)
seeded(lambda: plait.multinomial(plait.ones(4, device=d), 3))
seeded(lambda: nn.init.orthogonal_(plait.empty(3, 3, device=d)))
seeded(lambda: nn.init.sparse_(plait.empty(3, 3, device=d), 0.3))
seeded(lambda: plait.distributions.Multinomial(4, logits=x).sample())
seeded(lambda: plait.distributions.Categorical(logits=x).sample())
seeded(lambda: plait.distributions.LKJCholesky(2, 1 + x.abs()).sample())
seeded(lambda: plait.distributions.Wishart(i[2] + 1.0, plait.eye(3, device=d)).sample())
rnn.pad_sequence([x, x[:2]]), rnn.pack_sequence([x, x[:2]]).data
rnn.unpad_sequence(x[:, :2], i[1:3]), F.embedding_bag(i, x.T.contiguous()[:3], i[:2])
F.embedding(i, x, max_norm=0.5), F.embedding_bag(i, x, i[:3], mode="max")
F.multi_margin_loss(x, i[:3]), F.gaussian_nll_loss(x, x * 2, x.abs()), F.cross_entropy(x, i[:3])
list(DataLoader(TensorDataset(x, i[:3]), batch_size=2)), TensorDataset(x, i[:3])[i[:2].cpu()]
"""


def names(device: str) -> dict[str, Any]:
    x = ramp(device, 3, 4)
    i = plait.tensor([0, 1, 2, 1], device=device)
    return globals() | {"x": x, "m": x > 0, "i": i, "d": device}


@pytest.mark.parametrize("expression", SAME.strip().splitlines())
def test_expressions(library: Path, expression: str) -> None:
    on_cpu, on_device = (
        plain(eval(expression, names(device)), device) for device in ("cpu", "ext")
    )
    assert repr(on_cpu) == repr(on_device)


# ---- programs, called with the name of the device ------------------------------------------------
def leaf(device: str, *shape: int) -> pc.Tensor:
    return ramp(device, *shape).requires_grad_()


def assignment(device: str) -> Any:
    """Gradients flow to what was assigned from another device, and through indices of another."""
    x, values = leaf("cpu", 3), leaf(device, 4)
    result = plait.zeros(4, device=device)
    result[plait.tensor([0, 1])] = x.to(device)[plait.tensor([0, 2])]
    result[plait.tensor([2, 3])] = x.detach()[:2]
    (result * values).sum().backward()
    return x.grad.to(device), values.grad


def numbers(device: str) -> Any:
    """A 0-d tensor of the CPU gets its gradient from calls on a device."""
    x, grads = ramp(device, 3), []
    for call in (
        lambda w: x * w,
        lambda w: plait.where(x > 0, w, 0.0),
        lambda w: x.masked_fill(x > 0, w),
        lambda w: x.lerp(x * 2, w),
        lambda w: written(x, x > 0, w),
        lambda w: written(x, plait.tensor([0, 1]), w),
        lambda w: written(x, 0, w),
    ):
        weight = plait.tensor(2.0, requires_grad=True)
        call(weight).square().sum().backward()
        assert weight.grad.device.type == "cpu"
        grads.append(weight.grad.item())
    return grads


def ctc(device: str) -> Any:
    scores = plait.randn(5, 2, 4, generator=plait.Generator().manual_seed(1)).to(device)
    scores.requires_grad_()
    targets = plait.tensor([[1, 2], [1, 3]], device=device)
    lengths = plait.tensor([5, 4]), plait.tensor([2, 1], device=device)
    F.ctc_loss(scores.log_softmax(2), targets, *lengths).backward()
    return scores.grad


def ctc_of_devices(device: str) -> Any:
    """Lengths and targets lie on the device, in rows or one after the other."""
    scores = plait.randn(5, 2, 4, generator=plait.Generator().manual_seed(1)).to(device)
    scores = scores.log_softmax(2)
    inputs, expected = (plait.tensor(each, device=device) for each in ([5, 4], [2, 1]))
    rows, flat = (plait.tensor(each, device=device) for each in ([[1, 2], [1, 3]], [1, 2, 1]))
    return (
        F.ctc_loss(scores, rows, inputs, expected),
        F.ctc_loss(scores, flat, inputs, expected),
        F.ctc_loss(scores, flat, [5, 4], [2, 1], reduction="none"),
        F.ctc_loss(scores[:, 0], rows[0], inputs[0], expected[0]),
    )


def bags(device: str) -> Any:
    places, starts = (plait.tensor(each, device=device) for each in ([0, 1, 2, 1, 0], [0, 2, 2]))
    results = []
    for mode in ("sum", "mean", "max"):
        for padding in (None, 1):
            for bag in ((places, starts), (places[:4].reshape(2, 2), None)):
                weight = leaf(device, 3, 4)
                values = F.embedding_bag(
                    bag[0], weight, bag[1], mode=mode, padding_idx=padding, max_norm=1.0
                )
                values.square().sum().backward()
                results += [values, weight.grad]
    return results


def packed(device: str) -> Any:
    model = seeded(lambda: nn.LSTM(2, 3, bidirectional=True)).to(device)
    x, lengths = ramp(device, 4, 3, 2), plait.tensor([2, 4, 1], device=device)
    results = []
    for each in (lengths, lengths.cpu(), [2, 4, 1]):
        sequence = rnn.pack_padded_sequence(x, each, enforce_sorted=False)
        y, state = model(sequence)
        y.data.sum().backward()
        padded, counts = rnn.pad_packed_sequence(y)
        results += [padded, state, model.weight_hh_l0.grad, counts.tolist()]
    return results


def norm(device: str) -> Any:
    layer = nn.BatchNorm1d(4, momentum=None).to(device)
    x = ramp(device, 3, 4)
    return layer(x), layer(x + 1), layer.running_mean, layer.running_var, layer.num_batches_tracked


def adaptive(device: str) -> Any:
    layer = seeded(lambda: nn.AdaptiveLogSoftmaxWithLoss(4, 10, [2, 5])).to(device)
    x, targets = ramp(device, 3, 4), plait.tensor([0, 4, 9], device=device)
    return *layer(x, targets), layer.predict(x), layer.log_prob(x)


def attention(device: str) -> Any:
    layer = seeded(lambda: nn.MultiheadAttention(4, 2, batch_first=True)).to(device)
    x, padding = ramp(device, 2, 3, 4), plait.tensor([[False, False, True]] * 2, device=device)
    causal = plait.ones(3, 3, device=device).triu(1).bool()
    return layer(x, x, x, key_padding_mask=padding, attn_mask=causal)


def modules(device: str) -> Any:
    """Parameters move, are copied, saved and loaded, and `data` is set."""
    model = seeded(lambda: nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))).to(device)
    model(ramp(device, 5, 3)).sum().backward()
    twin = copy.deepcopy(model)
    there = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    there.load_state_dict(model.state_dict())
    assert there[0].weight.device.type == "cpu"
    back = pickle.loads(pickle.dumps(model))
    back.load_state_dict(there.state_dict())
    back.load_state_dict(plait.load(stored(model.state_dict())))
    twin[0].bias.data = twin[0].bias.data * 2
    at_home = there[0].weight.to(device)
    return model[0].weight.grad, list(twin.state_dict().values()), list(back.parameters()), at_home


def shared(device: str) -> Any:
    """Tensors that shared a storage share it again when they are loaded."""
    x = ramp(device, 3, 4)
    loaded = plait.load(stored([x, x[0], x.T])), pickle.loads(pickle.dumps([x, x[0], x.T]))
    for first, row, turned in loaded:
        first[0, 0] = 7
        assert row[0] == 7
        assert turned[0, 0] == 7
    return loaded


def checks(device: str) -> Any:
    x = leaf(device, 2, 3).double().detach().requires_grad_()
    return plait.autograd.gradcheck(lambda t: (t * t).sin(), (x,)), plait.autograd.gradgradcheck(
        lambda t: t**3, (x,)
    )


def complex_check(device: str) -> Any:
    x = plait.complex(ramp(device, 3).double(), ramp(device, 3).double()).requires_grad_()
    return plait.autograd.gradcheck(lambda t: t * t.conj(), (x,))


def wrong_gradient(device: str) -> Any:
    x = ramp(device, 3).double().requires_grad_()
    scale = plait.tensor(1.0, dtype=plait.float64, device=device)
    return plait.autograd.gradcheck(
        lambda t: t * scale + (t * t).detach(), (x,), raise_exception=False
    )


def anomaly(device: str) -> Any:
    x = leaf(device, 3)
    with pytest.raises(RuntimeError, match="sqrt"), plait.autograd.detect_anomaly():
        (x.sqrt() * 0).sum().backward()


def kept_on_cpu(device: str) -> Any:
    x = leaf(device, 3)
    for pinned in (False, True):
        with plait.autograd.graph.save_on_cpu(pin_memory=pinned):
            y = (x * x).exp()
        y.sum().backward()
    return x.grad


def validated(device: str) -> Any:
    scale = -plait.ones(1, device=device)
    with pytest.raises(ValueError, match="scale"):
        plait.distributions.Normal(0.0 * scale, scale, validate_args=True)


PROGRAMS = (
    adaptive,
    anomaly,
    assignment,
    attention,
    bags,
    checks,
    complex_check,
    ctc,
    ctc_of_devices,
    kept_on_cpu,
    modules,
    norm,
    numbers,
    packed,
    shared,
    validated,
    wrong_gradient,
)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_programs(library: Path, program: Callable[[str], Any]) -> None:
    on_cpu, on_device = (plain(program(device), device) for device in ("cpu", "ext"))
    assert repr(on_cpu) == repr(on_device)


# ---- on the other device -------------------------------------------------------------------------
def test_a_cpu_tensor_takes_indices_of_a_device(library: Path) -> None:
    x = ramp("cpu", 3, 4)
    there = x.to("ext")
    assert x[there > 0].tolist() == x[x > 0].tolist()
    assert x[plait.tensor([0, 2], device="ext")].tolist() == x[[0, 2]].tolist()
    assert (
        written(x, there > 0, there[there > 0] * 2).tolist()
        == x.clamp(max=0).add(2 * x.clamp(min=0)).tolist()
    )


def test_lists_take_tensors_of_several_devices(library: Path) -> None:
    result = plait.tensor([plait.tensor(1.0, device="ext"), 2.0, plait.tensor(3.0, device="ext:1")])
    assert str(result.device) == "cpu"
    assert result.tolist() == [1.0, 2.0, 3.0]
    assert plait.tensor(plait.ones(2, device="ext"), device="cpu").device.type == "cpu"


def test_files_keep_the_device_unless_the_program_moves_them(library: Path) -> None:
    x = ramp("ext:1", 3, 4)
    assert str(plait.load(stored(x)).device) == "ext:1"
    assert str(plait.load(stored(x), map_location="cpu").device) == "cpu"
    assert str(plait.load(stored(x), map_location="ext:0").device) == "ext:0"
    assert str(pickle.loads(pickle.dumps(x)).device) == "ext:1"


def test_text_names_the_device(library: Path) -> None:
    assert repr(plait.ones(2, device="ext")) == "tensor([1., 1.], device='ext:0')"


@pytest.mark.parametrize(
    "read", [lambda x: x.numpy(), memoryview, np.asarray], ids=["numpy", "buffer", "asarray"]
)
def test_memory_of_a_device_is_not_handed_to_the_host(
    library: Path, read: Callable[[Any], Any]
) -> None:
    with pytest.raises((RuntimeError, BufferError, TypeError), match=r"\.cpu\(\)"):
        read(plait.ones(2, device="ext"))


# ---- what does not wait --------------------------------------------------------------------------
def test_nothing_waits_if_no_value_is_read(library: Path, waits: Callable[[], int]) -> None:
    x = ramp("ext", 3, 4)
    target = plait.tensor([0, 1, 2], device="ext")
    mask = plait.ones(3, 3, device="ext").tril().bool()
    query = ramp("ext", 2, 3, 4)
    normal = plait.distributions.Normal(x, x.abs() + 1)
    before = waits()
    F.one_hot(target, 4)
    F.multi_margin_loss(x, target)
    F.gaussian_nll_loss(x, x, x.abs())
    F.scaled_dot_product_attention(query, query, query, attn_mask=mask)
    value = normal.rsample()
    normal.log_prob(value)
    plait.distributions.Uniform(x, x + 1)
    plait.distributions.Categorical(logits=x).log_prob(target)
    x[target] = 1.0
    x[target[:2]] = x[2] * 2
    x[x > 0] = 0.0
    x[(x == 0)[:, 0]] = 0
    x[x > 0] = x[0, 0]
    x[x == 0] = plait.tensor(0.0)
    x.clone().resize_(20)
    copy.deepcopy(x)
    x + plait.tensor(1.0)
    plait.where(x > 0, x, 0)
    assert waits() == before
    assert x.sum().item() == 0.0
    assert waits() > before


def test_layers_and_losses_read_nothing(library: Path) -> None:
    get = ctypes.CDLL(str(library)).example_device_get
    get.restype = ctypes.c_int64
    x, weight = ramp("ext", 3, 4), leaf("ext", 5, 3)
    norm = nn.BatchNorm1d(4, momentum=None).to("ext")
    places, starts = (plait.tensor(each, device="ext") for each in ([0, 1, 2, 1], [0, 2]))
    scores = plait.zeros(5, 2, 4, device="ext").log_softmax(2)
    targets = plait.tensor([[1, 2], [1, 3]], device="ext")
    inputs, expected = (plait.tensor(each, device="ext") for each in ([5, 4], [2, 1]))
    new = plait.empty(3, 3, device="ext")
    before = get(b"waits")
    norm(x)
    F.ctc_loss(scores, targets, inputs, expected)
    F.ctc_loss(scores, targets, [5, 4], [2, 1])
    F.ctc_loss(scores, targets.flatten()[:3], [5, 4], [2, 1])
    for mode in ("sum", "mean"):
        F.embedding_bag(places, weight, starts, mode=mode, padding_idx=1)
    F.embedding_bag(places.reshape(2, 2), weight, mode="max", padding_idx=1)
    F.embedding(places, weight.detach(), max_norm=0.5)
    F.embedding(places, weight, scale_grad_by_freq=True).sum().backward()
    for low, high in ((-2, 2), (1, 2), (-40, -30)):
        nn.init.trunc_normal_(new, a=low, b=high)
    assert get(b"waits") == before


def test_a_device_finds_wrong_targets(library: Path) -> None:
    scores = plait.zeros(5, 2, 4, device="ext").log_softmax(2)
    targets = plait.tensor([[1, 2], [1, 4]], device="ext")
    with pytest.raises(IndexError, match="gather"):
        F.ctc_loss(scores, targets, [5, 5], [2, 2]).item()


def test_saved_values_are_stored_and_freed_without_a_wait(library: Path) -> None:
    get = ctypes.CDLL(str(library)).example_device_get
    get.restype = ctypes.c_int64
    x = leaf("ext", 3)
    before = get(b"waits"), get(b"copies")
    with plait.autograd.graph.save_on_cpu(pin_memory=True):
        y = (x * x).exp()
    y.sum().backward()
    assert get(b"waits") == before[0]
    assert get(b"copies") > before[1]


# ---- loaders -------------------------------------------------------------------------------------
def test_batches_are_pinned(library: Path, waits: Callable[[], int]) -> None:
    there = plait.ones(4, device="ext")
    samples = TensorDataset(ramp("cpu", 4, 3), plait.arange(4), there)
    x, y, z = next(iter(DataLoader(samples, batch_size=2, pin_memory=True)))
    assert x.is_pinned()
    assert y.is_pinned()
    assert z.device == there.device
    assert x.tolist() == ramp("cpu", 4, 3)[:2].tolist()
    nested = [{"x": plait.ones(2), "name": "a"}, {"x": plait.zeros(2), "name": "b"}]
    for options in ({}, {"num_workers": 1, "multiprocessing_context": "thread"}):
        loader = DataLoader(
            nested, batch_size=2, pin_memory=True, pin_memory_device="ext", **options
        )
        (batch,) = loader
        assert batch["x"].is_pinned()
        assert batch["name"] == ["a", "b"]


COPIES = """
import sys, time
import plait, plait_abi

plait.ones(1)
plait_abi.load(sys.argv[1])
x = plait.ones(3, device="ext")
stream = plait.accelerator.current_stream()
y = x.to("cpu", non_blocking=True)
while not stream.query():
    time.sleep(0.001)
del x, y, stream
plait_abi.detach("example-device")
"""


def test_a_device_is_freed_when_its_copies_are_done(library: Path) -> None:
    command = [sys.executable, "-c", COPIES, str(library)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr


# ---- workers -------------------------------------------------------------------------------------
WORKERS = """
import sys
import plait, plait_abi
from plait.utils.data import DataLoader, TensorDataset

plait.ones(1)
plait_abi.load(sys.argv[1])
if __name__ == "__main__":
    data = TensorDataset(plait.arange(4.0, device="ext"), plait.arange(4, device="ext"))
    loader = DataLoader(data, 2, num_workers=1, multiprocessing_context=eval(sys.argv[2]))
    try:
        print([[str(x.device), x.tolist()] for x, _ in loader])
    except plait_abi.PlaitError as error:
        print(error)
"""


@pytest.mark.parametrize(
    ("context", "said"),
    [
        ("'thread'", "[['ext:0', [0.0, 1.0]], ['ext:0', [2.0, 3.0]]]"),
        ("'spawn'", "[['ext:0', [0.0, 1.0]], ['ext:0', [2.0, 3.0]]]"),
        ("None", "[['ext:0', [0.0, 1.0]], ['ext:0', [2.0, 3.0]]]"),
        ("'fork'", "ext:0 was in use when the process forked"),
    ],
    ids=["thread", "spawn", "new", "fork"],
)
def test_workers(library: Path, tmp_path: Path, context: str, said: str) -> None:
    program = tmp_path / "program.py"
    program.write_text(WORKERS)
    run = subprocess.run(
        [sys.executable, str(program), str(library), context],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert run.returncode == 0, run.stderr
    assert said in run.stdout
