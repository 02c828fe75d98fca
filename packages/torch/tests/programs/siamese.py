"""Metric learning: contrastive, triplet and cosine losses on shared weights."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

rng = np.random.default_rng(0)


class Embedder(nn.Module):
    def __init__(self, width=16, out=4):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(6, width), nn.PReLU(), nn.Linear(width, out))

    def forward(self, *xs):
        outs = tuple(F.normalize(self.net(x), p=2, dim=-1) for x in xs)
        return outs if len(outs) > 1 else outs[0]


class ContrastiveLoss(nn.Module):
    def __init__(self, margin=1.0):
        super().__init__()
        self.margin = margin

    def forward(self, a, b, label):
        distance = F.pairwise_distance(a, b, keepdim=True)
        same = (1 - label) * torch.pow(distance, 2)
        difference = label * torch.pow(torch.clamp(self.margin - distance, min=0.0), 2)
        return torch.mean(same + difference)


model = Embedder()
for p in model.parameters():
    if p.numel() > 1:
        p.data.copy_(torch.from_numpy(rng.normal(0, 0.4, p.shape)))
centres = rng.normal(size=(4, 6))
label = rng.integers(0, 4, 48)
x = torch.from_numpy(centres[label] + rng.normal(0, 0.2, (48, 6))).to(torch.float32)
label = torch.from_numpy(label)
positive = torch.tensor(
    [next(j for j in range(48) if j != i and label[j] == label[i]) for i in range(48)]
)
negative = torch.tensor([next(j for j in range(48) if label[j] != label[i]) for i in range(48)])
triplet = nn.TripletMarginLoss(margin=0.5, p=2)
cosine = nn.CosineEmbeddingLoss(margin=0.2)
contrastive = ContrastiveLoss()
optimizer = torch.optim.Adagrad(model.parameters(), lr=0.05)
for step in range(20):
    a, p, n = model(x, x[positive], x[negative])
    losses = [
        triplet(a, p, n),
        contrastive(a, n, torch.ones(48, 1)) + contrastive(a, p, torch.zeros(48, 1)),
        cosine(a, n, -torch.ones(48)),
        F.margin_ranking_loss((a * p).sum(1), (a * n).sum(1), torch.ones(48), margin=0.3),
    ]
    loss = torch.stack(losses).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 5 == 0:
        print(step, [f"{each.item():.4f}" for each in losses])

# contrastive predictions within the batch, with a learnt temperature
logit_scale = nn.Parameter(torch.ones([]) * np.log(1 / 0.07))
a, b = model(x[:8]), model(x[positive[:8]])
logits = logit_scale.exp() * a @ b.t()
both = (F.cross_entropy(logits, torch.arange(8)) + F.cross_entropy(logits.t(), torch.arange(8))) / 2
both.backward()
print(f"{both.item():.3f} {logit_scale.grad.item():.3f}")
similarity = F.cosine_similarity(a.unsqueeze(1), b.unsqueeze(0), dim=-1)
print(
    torch.allclose(similarity, a @ b.T, atol=1e-5), tuple(torch.triu(similarity, diagonal=1).shape)
)
