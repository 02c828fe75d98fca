"""performer-pytorch: attention by random features, its model trained on tokens for 5 steps."""

import torch
from performer_pytorch import FastAttention, PerformerLM
from recording import array, fill, record

torch.manual_seed(0)
attention = FastAttention(dim_heads=8, nb_features=16, causal=False)
record("projection", attention.projection_matrix, rtol=5e-3)
q, k, v = (array(seed, 1, 2, 20, 8) for seed in range(3))
record("attention", attention(q, k, v), rtol=5e-3)
model = PerformerLM(
    num_tokens=30, max_seq_len=32, dim=16, depth=2, heads=2, dim_head=8, nb_features=16
)
fill(model)
tokens = torch.arange(64).view(2, 32) * 7 % 30
optimizer = torch.optim.Adam(model.parameters(), 1e-3)
losses = []
for _ in range(5):
    loss = torch.nn.functional.cross_entropy(model(tokens).transpose(1, 2), tokens.roll(-1, 1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
record("losses", losses, rtol=1e-2)
