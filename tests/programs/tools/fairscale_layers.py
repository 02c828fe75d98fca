"""fairscale: checkpointed activations, offloaded and adaptive optimizers, a pipeline's balance."""

import torch
from fairscale.nn.checkpoint import checkpoint_wrapper
from fairscale.nn.misc import FlattenParamsWrapper
from fairscale.optim import AdaScale
from recording import array, fill, gradients, record

x = array(0, 6, 4)
plain = fill(torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2)))
plain(x).square().sum().backward()
record("plain", gradients(plain))
wrapped = checkpoint_wrapper(
    fill(torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2)))
)
wrapped(x.requires_grad_()).square().sum().backward()
record("checkpointed", list(gradients(wrapped).values()))
flat = FlattenParamsWrapper(fill(torch.nn.Linear(4, 3)))
record("flat", list(flat.parameters()))
record("flat output", flat(x))
record("state", sorted(flat.state_dict()))
optimizer = AdaScale(
    torch.optim.SGD(plain.parameters(), 0.1), num_gradients_to_accumulate=2, world_size=1
)
losses = []
for _ in range(3):
    for part in range(2):
        loss = plain(array(part, 6, 4)).square().mean()
        loss.backward()
        losses.append(loss.item())
    optimizer.step()
    optimizer.zero_grad()
record("losses", losses)
