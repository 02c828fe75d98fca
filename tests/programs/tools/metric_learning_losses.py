"""pytorch-metric-learning: losses, miners and distances, 20 steps, and its accuracy calculator."""

import torch
from pytorch_metric_learning import distances, losses, miners, reducers, testers
from pytorch_metric_learning.utils.inference import CustomKNN
from recording import array, fill, record
from torch import nn

x, labels = array(0, 32, 6), torch.arange(32) % 4
embeddings = nn.functional.normalize(array(1, 32, 8), dim=1).requires_grad_()
plain = (
    "ContrastiveLoss",
    "TripletMarginLoss",
    "NTXentLoss",
    "MultiSimilarityLoss",
    "CircleLoss",
    "LiftedStructureLoss",
    "SupConLoss",
    "AngularLoss",
    "FastAPLoss",
    "NPairsLoss",
    "SignalToNoiseRatioContrastiveLoss",
    "TupletMarginLoss",
)
for name in plain:
    loss = getattr(losses, name)()(embeddings, labels)
    (gradient,) = torch.autograd.grad(loss, embeddings)
    record(name, loss)
    record(f"{name} gradient", gradient, rtol=5e-3)
classes = {"num_classes": 4, "embedding_size": 8}
for name in ("ArcFaceLoss", "CosFaceLoss", "ProxyAnchorLoss", "NormalizedSoftmaxLoss"):
    record(name, fill(getattr(losses, name)(**classes))(embeddings, labels))
for name in ("MultiSimilarityMiner", "TripletMarginMiner", "BatchHardMiner", "PairMarginMiner"):
    record(name, list(getattr(miners, name)()(embeddings, labels)))
for name in ("CosineSimilarity", "LpDistance", "SNRDistance", "DotProductSimilarity"):
    record(name, getattr(distances, name)()(embeddings))

model = fill(nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 8)))
criterion = losses.TripletMarginLoss(
    distance=distances.CosineSimilarity(), reducer=reducers.ThresholdReducer(low=0)
)
miner = miners.MultiSimilarityMiner()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
found = []
for _ in range(20):
    output = model(x)
    loss = criterion(output, labels, miner(output, labels))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    found.append(loss.item())
record("losses", found)
record("trained", model.state_dict(), rtol=1e-2)
memory = losses.CrossBatchMemory(losses.NTXentLoss(), 8, memory_size=64)
record("memory", [memory(model(x), labels) for _ in range(2)])
record(
    "nearest", CustomKNN(distances.CosineSimilarity())(model(x).detach(), 3, model(x).detach())[1]
)
record("tester", testers.GlobalEmbeddingSpaceTester.__name__)
