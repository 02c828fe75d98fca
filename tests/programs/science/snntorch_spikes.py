"""snntorch: spiking neurons trained by a surrogate gradient, spikes of data."""

import snntorch as snn
import torch
from recording import array, fill, record
from snntorch import functional, spikegen, surrogate

torch.manual_seed(0)
spikes = spikegen.rate(array(0, 8, 6).sigmoid(), num_steps=10)
record("rate", spikes)
record(
    "latency", spikegen.latency(array(0, 8, 6).sigmoid(), num_steps=10, normalize=True, linear=True)
)
first, last = fill(torch.nn.Linear(6, 12)), fill(torch.nn.Linear(12, 3))
one = snn.Leaky(beta=0.9, spike_grad=surrogate.fast_sigmoid(slope=25))
two = snn.Synaptic(alpha=0.8, beta=0.9, learn_beta=True)
optimizer = torch.optim.Adam([*first.parameters(), *last.parameters(), *two.parameters()], 1e-2)
measure = functional.ce_rate_loss()
losses = []
for _ in range(5):
    state, (synapse, membrane) = one.init_leaky(), two.init_synaptic()
    outputs = []
    for step in spikes:
        spike, state = one(first(step), state)
        spike, synapse, membrane = two(last(spike), synapse, membrane)
        outputs.append(spike)
    loss = measure(torch.stack(outputs), torch.arange(8) % 3)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
record("losses", losses, rtol=2e-2)
record("count", torch.stack(outputs).sum(), rtol=0.1, atol=2)
