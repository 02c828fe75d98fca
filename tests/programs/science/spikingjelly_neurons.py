"""spikingjelly: multi-step spiking layers, a convolution trained through surrogates, encoders."""

import torch
from recording import array, fill, record
from spikingjelly.activation_based import encoding, functional, layer, neuron, surrogate

net = torch.nn.Sequential(
    layer.Conv2d(1, 4, 3, padding=1),
    layer.BatchNorm2d(4),
    neuron.IFNode(surrogate_function=surrogate.ATan()),
    layer.MaxPool2d(2),
    layer.Flatten(),
    layer.Linear(64, 3),
    neuron.LIFNode(tau=2.0, surrogate_function=surrogate.Sigmoid()),
)
fill(net)
functional.set_step_mode(net, "m")
x, y = array(0, 5, 6, 1, 8, 8), torch.arange(6) % 3
optimizer = torch.optim.Adam(net.parameters(), 1e-2)
losses = []
for _ in range(5):
    loss = torch.nn.functional.mse_loss(net(x).mean(0), torch.nn.functional.one_hot(y, 3).float())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    functional.reset_net(net)
    losses.append(loss.item())
record("losses", losses, rtol=2e-2)
torch.manual_seed(0)
record("poisson", encoding.PoissonEncoder()(array(1, 4, 4).sigmoid()))
