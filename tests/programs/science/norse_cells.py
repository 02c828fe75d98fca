"""norse: LIF and LSNN cells over time, in a sequence, with gradients through spikes."""

import norse.torch as norse
import torch
from recording import array, fill, record

x = (array(0, 10, 4, 6) > 0.5).float()
for kind in (norse.LIFCell, norse.LIFBoxCell, norse.LIFAdExCell):
    cell = kind()
    state, outputs = None, []
    for step in x:
        spike, state = cell(3 * step, state)
        outputs.append(spike)
    record(kind.__name__, torch.stack(outputs))
model = norse.SequentialState(
    fill(torch.nn.Linear(6, 8)), norse.LIF(), fill(torch.nn.Linear(8, 3)), norse.LI()
)
optimizer = torch.optim.Adam(model.parameters(), 1e-2)
losses = []
for _ in range(5):
    output, state = model(x)
    loss = torch.nn.functional.cross_entropy(output[-1], torch.tensor([0, 1, 2, 0]))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
record("losses", losses, rtol=1e-2)
