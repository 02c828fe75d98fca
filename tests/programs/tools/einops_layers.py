"""einops: rearrange, reduce, repeat, einsum and pack, and its layers in a model for 20 steps."""

import torch
from einops import einsum, pack, parse_shape, rearrange, reduce, repeat, unpack
from einops.layers.torch import EinMix, Rearrange, Reduce
from recording import array, fill, gradients, record
from torch import nn

x = array(0, 2, 3, 8, 8)
record("patches", rearrange(x, "b c (h p) (w q) -> b (h w) (p q c)", p=4, q=4))
record("mean", reduce(x, "b c h w -> b c", "mean"))
record("max", reduce(x, "b c (h 2) (w 2) -> b h w c", "max"))
record("repeated", repeat(x[0, 0], "h w -> (h 2) (w 3)"))
record("product", einsum(x, x, "b c h w, b d h w -> b c d"))
packed, shapes = pack([x, x[:, :, 0]], "b c *")
record("packed", packed)
record("unpacked", unpack(packed, shapes, "b c *"))
record("shape", parse_shape(x, "b c _ w"))

model = nn.Sequential(
    Rearrange("b c (h p) (w q) -> b (h w) (p q c)", p=4, q=4),
    nn.Linear(48, 16),
    EinMix("b n c -> b m c", weight_shape="n m", bias_shape="m", n=4, m=6),
    nn.GELU(),
    Reduce("b n c -> b c", "mean"),
    nn.Linear(16, 3),
)
model = fill(model)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
losses = []
for _ in range(20):
    loss = nn.functional.cross_entropy(model(x), torch.tensor([0, 2]))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
record("losses", losses)
record("gradients", gradients(model), atol=1e-4)
record("trained", model.state_dict())
