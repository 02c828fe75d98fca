"""torchviz: the graph of a loss with its parameters as a text for Graphviz."""

import torch
from recording import array, fill, record
from torchviz import make_dot

model = fill(torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1)))
loss = model(array(0, 5, 4)).square().mean()
dot = make_dot(loss, params=dict(model.named_parameters()))
labels = sorted(
    line.split("[label=")[1].split()[0] for line in dot.source.splitlines() if "[label=" in line
)
record("labels", labels)
record("edges", sum("->" in line for line in dot.source.splitlines()))
attributes = make_dot(loss, params=dict(model.named_parameters()), show_attrs=True, show_saved=True)
record("saved", sum("->" in line for line in attributes.source.splitlines()))
