"""Averaged models, buffers of bytes, comparisons, calls with other parameters, names of devices."""

import array
import copy
import itertools
import pickle

import torch
from torch import nn
from torch.func import functional_call
from torch.optim.swa_utils import (
    AveragedModel,
    get_ema_avg_fn,
    get_ema_multi_avg_fn,
    get_swa_avg_fn,
    get_swa_multi_avg_fn,
    update_bn,
)
from torch.testing import assert_allclose


def show(label, call, words=()):
    try:
        result = call()
        if isinstance(result, torch.Tensor):
            result = str(result.dtype), result.tolist()
        print(label, result)
    except Exception as error:
        kinds = (ValueError, TypeError, AssertionError, AttributeError, BufferError, RuntimeError)
        kind = next(k.__name__ for k in kinds if isinstance(error, k))
        if words:
            print(label, "refused", [each in str(error) for each in words])
        else:
            print(label, "refused" if kind in ("ValueError", "RuntimeError") else kind)


# ---- averaged models


def make_model():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(1.0)
    return model


CHOICES = {
    "default": {},
    "swa": {"avg_fn": get_swa_avg_fn()},
    "ema": {"avg_fn": get_ema_avg_fn(0.5)},
    "swa of lists": {"multi_avg_fn": get_swa_multi_avg_fn()},
    "ema of lists": {"multi_avg_fn": get_ema_multi_avg_fn(0.5)},
    "own": {"avg_fn": lambda average, value, count: average + value * count},
}
for (name, choice), use_buffers in itertools.product(CHOICES.items(), (False, True)):
    if use_buffers and name == "swa of lists":  # PyTorch cannot average the count of batches
        continue
    model = make_model()
    average = AveragedModel(model, use_buffers=use_buffers, **choice)
    for step in range(3):
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.fill_(2.0**step)
        model[1].running_mean.fill_(step + 1.0)
        average.update_parameters(model)
    print(name, use_buffers, average.n_averaged.item(), average.n_averaged.dtype)
    print("  ", [p[0].tolist() for p in average.parameters()], average.module[1].running_mean[0])
print(isinstance(average, nn.Module), [k for k, _ in average.named_buffers()])
print(sorted(average.state_dict()), [k for k, _ in average.named_children()])
print([k for k, _ in average.named_parameters()], sorted(nn.Sequential(average).state_dict()))
print(average.double().n_averaged.dtype, average.train(False).module.training)
average.float()
other = AveragedModel(make_model())
print(other.load_state_dict(average.state_dict()), other.n_averaged)
print(other.n_averaged is other._buffers["n_averaged"], copy.deepcopy(other).n_averaged)
other.n_averaged = torch.tensor(7)
print(other.state_dict()["n_averaged"])
show("missing", lambda: other.load_state_dict({}))
show("attribute", lambda: other.running_mean)
other = pickle.loads(pickle.dumps(AveragedModel(make_model())))
print(other.n_averaged, other(torch.ones(2, 2)).shape)
update_bn([torch.rand(4, 2), torch.rand(4, 2)], other)
print(other.module[1].num_batches_tracked)

# ---- buffers

for code, values in (("f", [1.5, 2]), ("d", [1.5, -2]), ("i", [1, 2]), ("q", [3]), ("B", [0] * 8)):
    for dtype in (None, torch.float32, torch.uint8, torch.int32, torch.bfloat16):
        data = array.array(code, values)
        show(f"asarray {code} {dtype}", lambda d=data, t=dtype: torch.asarray(d, dtype=t))
for kind in (bytes, bytearray, lambda data: memoryview(bytearray(data))):
    show("bytes", lambda k=kind: torch.asarray(k(b"ab"), dtype=torch.uint8))
    show("odd", lambda k=kind: torch.asarray(k(b"abc"), dtype=torch.int16))
memory = bytearray(b"abcd")
shared, copied = torch.asarray(memory, dtype=torch.uint8), bytes(memory)
shared[0] = 7
print(memory[0], torch.asarray(copied, dtype=torch.uint8, copy=True).tolist())
print(torch.asarray(memory, dtype=torch.uint8, copy=False).data_ptr() == shared.data_ptr())

# ---- comparisons

nan = float("nan")
for first, second in (
    (torch.tensor([nan]), torch.tensor([nan])),
    (torch.tensor([nan]), torch.tensor([1.0])),
    (torch.tensor([1.0]), torch.tensor([1], dtype=torch.int64)),
    (torch.tensor([1.0]), [1.0]),
    ([1.0], torch.tensor([1.0])),
    (torch.tensor([1.0]), 1.0),
    (torch.ones(2), torch.ones(3)),
    (torch.tensor([1.0]), torch.tensor([1.00001])),
):
    for rules in (
        {},
        {"equal_nan": True},
        {"equal_nan": False},
        {"rtol": 1.0, "atol": 1.0},
        {"rtol": 1.0},
        {"unknown": 1},
    ):
        show(
            f"{first} {second} {rules}",
            lambda a=first, b=second, r=rules: assert_allclose(a, b, **r),
        )
show(
    "words", lambda: assert_allclose(torch.ones(1), torch.zeros(1), msg="own words"), ["own words"]
)

# ---- names of devices

for name in ("foo", "CPU", "foo:0"):
    words = ["Expected one of cpu", f"device type at start of device string: {name[:3]}"]
    show(f"device {name}", lambda n=name: torch.device(n), words)
    show(f"ones {name}", lambda n=name: torch.ones(1, device=n), words)
for name in ("cuda:x", "cpu:-1", "cpu:1:2", "cpu:", "cpu:01"):
    show(f"device {name}", lambda n=name: torch.device(n), [f"Invalid device string: '{name}'"])
for value in (3.5, None, [1]):
    show(f"device {value}", lambda v=value: torch.device(v))

# ---- calls with other parameters

layer, x = nn.Linear(2, 1, bias=False), torch.ones(1, 2)
with torch.no_grad():
    layer.weight.fill_(1.0)
for tensors, strict in itertools.product(
    ({"weight": x * 3}, {"other": x}, {"weight": x, "other": x}, {"bias": torch.ones(1)},
     {"inner.weight": x}, {}), (False, True),
):  # fmt: skip
    show(
        f"call {sorted(tensors)} {strict}",
        lambda t=tensors, s=strict: functional_call(layer, t, x, strict=s).detach(),
    )
