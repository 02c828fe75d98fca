"""Pickles and files of objects: each library reads the other's, by the names of their classes."""

from __future__ import annotations

import pathlib
import subprocess
import sys

import pytest

# a process writes the objects of `things`, or reads those of another one and uses them
PROGRAM = """
import pickle, sys
action, file, install = sys.argv[1:]
if install == "plait":
    import plait_torch
    plait_torch.install()
import torch
from torch import nn

x = torch.arange(6.0).reshape(2, 3)


def things():
    torch.manual_seed(0)
    parameter, note = nn.Parameter(torch.ones(2)), torch.ones(2)
    parameter.tag = note.tag = "a"
    net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.BatchNorm1d(4), nn.Linear(4, 2))
    optimizer = torch.optim.Adam(net.parameters(), lr=0.1)
    net(x).sum().backward()
    optimizer.step()
    base = torch.arange(10)
    return {
        "values": [x, x.t(), base[3:7], parameter, note, torch.ones(2, dtype=torch.bfloat16),
                   torch.empty(3, device="meta"), torch.eye(3).to_sparse(), torch.tensor(3.0)],
        "types": [torch.float32, torch.device("cpu"), torch.Size([1, 2]), torch.strided,
                  torch.sparse_coo, torch.Tensor, nn.Linear, torch.optim.SGD, torch.Generator],
        "functions": [torch.add, nn.functional.linear, torch.linalg.solve, torch.einsum,
                      nn.functional.relu, nn.functional.conv2d, torch.save, torch.fft.fft],
        "net": net, "optimizer": optimizer, "recurrent": [nn.LSTM(3, 4), nn.GRU(3, 2)],
        "attention": [nn.MultiheadAttention(3, 1), nn.TransformerEncoderLayer(3, 1, 4)],
        "schedule": torch.optim.lr_scheduler.StepLR(optimizer, 2),
        "others": [nn.Conv2d(1, 2, 3), nn.Embedding(3, 2), nn.CrossEntropyLoss(),
                   torch.distributions.Normal(torch.zeros(1), torch.ones(1)),
                   torch.utils.data.TensorDataset(x), x.max(0)],
    }


own = things()
if action == "write":
    # the form of PyTorch's functions needs a newer protocol
    result = {name: pickle.dumps(thing, 4) for name, thing in own.items()}
    with open(file, "wb") as target:
        pickle.dump(result, target)
    torch.save(own["net"], file + ".net")
    raise SystemExit
with open(file, "rb") as source:
    read = {name: pickle.loads(data) for name, data in pickle.load(source).items()}
for a, b in zip(own["values"], read["values"], strict=True):
    assert type(a) is type(b) and a.dtype == b.dtype and a.shape == b.shape, (a, b)
    assert a.device.type == "meta" or torch.equal(a.to_dense(), b.to_dense())
assert read["values"][3].tag == read["values"][4].tag == "a" and read["values"][3].requires_grad
for name in ("types", "functions"):
    assert own[name] == read[name], (own[name], read[name])
for name in ("net", "recurrent", "attention", "others"):
    pairs = [(own[name], read[name])] if name == "net" else zip(own[name], read[name], strict=True)
    for a, b in pairs:
        assert type(a) is type(b), (a, b)
again = torch.load(file + ".net", weights_only=False).eval()
assert torch.allclose(again(x), read["net"].eval()(x))
read["recurrent"][0](x), read["recurrent"][1](x)
read["attention"][0](x, x, x), read["attention"][1](x)
read["others"][0](torch.ones(1, 1, 4, 4)), read["others"][1](torch.tensor([0]))
read["optimizer"].step()
read["schedule"].step()
print("read")
"""


@pytest.mark.parametrize(("writer", "reader"), [("plait", "pytorch"), ("pytorch", "plait")])
def test_each_reads_the_pickles_of_the_other(
    tmp_path: pathlib.Path, writer: str, reader: str
) -> None:
    file = str(tmp_path / "things")
    for action, library in (("write", writer), ("read", reader)):
        command = [sys.executable, "-W", "ignore", "-c", PROGRAM, action, file, library]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        assert run.returncode == 0, run.stderr
    assert run.stdout == "read\n"
