"""Clusters, neighbours, principal components: tensors without modules."""

import numpy as np
import torch

rng = np.random.default_rng(0)
true = np.array([[0.0, 0.0, 1.0], [4.0, 4.0, 0.0], [0.0, 5.0, -1.0]])
points = torch.from_numpy(np.concatenate([rng.normal(c, 0.5, (50, 3)) for c in true])).float()
assert points.is_contiguous() and points.stride() == (3, 1)


def kmeans(x, k, iterations=10):
    centres = x[:: x.shape[0] // k][:k].clone()
    for _ in range(iterations):
        distances = torch.cdist(x, centres)
        choice = distances.argmin(dim=1)
        one_hot = torch.nn.functional.one_hot(choice, k).to(x.dtype)
        counts = one_hot.sum(0)
        centres = (one_hot.t() @ x) / counts.clamp(min=1).unsqueeze(1)
    return centres, choice


centres, choice = kmeans(points, 3)
values, counts = torch.unique(choice, return_counts=True)
print(values.tolist(), counts.tolist())
order = centres.sum(1).argsort()
print(np.round(centres[order].numpy(), 3).tolist())
spread = torch.stack([points[choice == j].std(dim=0) for j in range(3)])
print(f"{spread.mean().item():.4f}", bool((spread > 0).all()))

# neighbours
near = torch.cdist(points, points, p=2).topk(4, largest=False)
print(tuple(near.values.shape), near.indices[:, 0].equal(torch.arange(150)))
votes = choice[near.indices[:, 1:]].mode(dim=1).values
print("agree", (votes == choice).float().mean().item())

# principal components
mean, centred = points.mean(0), points - points.mean(0, keepdim=True)
covariance = centred.T @ centred / (len(points) - 1)
assert torch.allclose(covariance, torch.cov(points.T), atol=1e-5)
eigenvalues, vectors = torch.linalg.eigh(covariance)
U, S, Vh = torch.linalg.svd(centred, full_matrices=False)
print((S**2 / (len(points) - 1)).flip(0).numpy().round(3).tolist())
print(eigenvalues.numpy().round(3).tolist())
print(f"{(vectors.abs().T @ Vh.abs().T).diagonal().sum().item():.3f}")

# what programs do with indices
grid = torch.stack(torch.meshgrid(torch.linspace(-1, 1, 3), torch.arange(2.0), indexing="ij"), -1)
print(grid.view(-1, 2).tolist())
m = torch.zeros(4, 5)
m[torch.tensor([0, 2]), torch.tensor([1, 3])] = torch.tensor([5.0, 6.0])
m[1:, ::2] += 1
m[m == 6] = -1
print(m.tolist(), m.nonzero().shape[0], torch.where(m > 1))
print(torch.cumsum(torch.ones(4), 0).prod().item(), torch.histc(points[:, 0], bins=4).sum().item())
print(torch.einsum("bi,bj->ij", points, points).diag().round().tolist())
