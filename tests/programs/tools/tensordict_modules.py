"""tensordict: batches of tensors, modules on them, stacks, memory maps, functional calls."""

import torch
from recording import array, fill, record
from tensordict import TensorDict, from_module
from tensordict.nn import TensorDictModule, TensorDictSequential
from torch import nn

data = TensorDict({"x": array(0, 6, 4), "deep": {"y": torch.arange(6)}}, batch_size=[6])
record("shape", list(data.shape))
record("first", data[:2].to_dict())
record("masked", data[data["deep", "y"] > 2]["x"])
record("stacked", torch.stack([data, data], 1)["x"].shape)
record("joined", torch.cat([data, data])["deep", "y"])
record("viewed", data.view(2, 3)["x"])
record("split", [part["x"] for part in data.split(2)])
record("applied", data.apply(lambda t: t + 1)["deep", "y"])
record("keys", sorted(str(key) for key in data.keys(True, True)))
record("flat", sorted(data.flatten_keys(".").keys()))
record("double", str(data.to(torch.float64)["x"].dtype).split(".")[-1])
data["z"] = torch.ones(6, 1)
data.set_("x", data["x"] * 2)
record("sum", data.select("x", "z").sum()["x"])
data.memmap("mapped")
record("mapped", TensorDict.load_memmap("mapped")["x"])
torch.save(data.to_dict(), "data.pt")
record("saved", torch.load("data.pt")["x"])

hidden = TensorDictModule(nn.Linear(4, 8), in_keys=["x"], out_keys=["hidden"])
output = TensorDictModule(nn.Linear(8, 2), in_keys=["hidden"], out_keys=["output"])
model = fill(TensorDictSequential(hidden, output))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
losses = []
for _ in range(20):
    loss = model(data.clone())["output"].square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
record("losses", losses)
record("trained", model.state_dict())
parameters = from_module(model)
with (parameters.data * 0).to_module(model):
    record("zero", model(data.clone())["output"])
record("back", model(data.clone())["output"])
