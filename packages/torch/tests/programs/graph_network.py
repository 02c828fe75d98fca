"""Message passing by scatter and index operations, and a graph convolution with a sparse matrix."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parameter import Parameter

rng = np.random.default_rng(0)


class GraphConvolution(nn.Module):
    def __init__(self, in_features, out_features, bias=True):
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.weight = Parameter(torch.FloatTensor(in_features, out_features))
        if bias:
            self.bias = Parameter(torch.FloatTensor(out_features))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self):
        stdv = 1.0 / self.weight.size(1) ** 0.5
        values = rng.uniform(-stdv, stdv, self.weight.shape)
        self.weight.data = torch.from_numpy(values.astype(np.float32))
        if self.bias is not None:
            self.bias.data.zero_()

    def forward(self, input, adj):
        output = torch.spmm(adj, torch.mm(input, self.weight))
        return output if self.bias is None else output + self.bias

    def __repr__(self):
        name = self.__class__.__name__
        return f"{name} ({self.in_features} -> {self.out_features})"


class GCN(nn.Module):
    def __init__(self, nfeat, nhid, nclass):
        super().__init__()
        self.gc1 = GraphConvolution(nfeat, nhid)
        self.gc2 = GraphConvolution(nhid, nclass)

    def forward(self, x, adj):
        return F.log_softmax(self.gc2(F.relu(self.gc1(x, adj)), adj), dim=1)


n = 40
labels = torch.LongTensor(np.arange(n) % 3)
same = (labels[:, None] == labels[None, :]).numpy()
edges = (rng.random((n, n)) < np.where(same, 0.4, 0.03)) | np.eye(n, dtype=bool)
rows, cols = edges.nonzero()
degree = edges.sum(1)
values = torch.from_numpy((1.0 / degree[rows]).astype(np.float32))
indices = torch.from_numpy(np.vstack((rows, cols)).astype(np.int64))
adj = torch.sparse_coo_tensor(indices, values, torch.Size((n, n)))
features = torch.FloatTensor(rng.normal(size=(n, 8)))
model = GCN(8, 16, 3)
print(model)
optimizer = torch.optim.Adam(model.parameters(), lr=0.05, weight_decay=5e-4)
idx_train = torch.LongTensor(range(20))
for epoch in range(40):
    model.train()
    optimizer.zero_grad()
    output = model(features, adj)
    loss = F.nll_loss(output[idx_train], labels[idx_train])
    loss.backward()
    optimizer.step()
    if epoch % 10 == 0:
        print(f"epoch {epoch} loss {loss.item():.4f}")
preds = output.max(1)[1].type_as(labels)
print(f"correct {preds.eq(labels).double().sum().item():.0f} of {n}")

# the same sums by messages along edges
src, dst = indices[1], indices[0]
messages = features[src] * values.unsqueeze(1)
by_index = torch.zeros_like(features).index_add_(0, dst, messages)
by_scatter = torch.zeros(n, 8).scatter_add_(0, dst[:, None].expand_as(messages), messages)
assert torch.allclose(by_index, adj.to_dense() @ features, atol=1e-5)
assert torch.allclose(by_scatter, by_index, atol=1e-5)
largest = torch.full((n, 8), float("-inf"))
largest.scatter_reduce_(0, dst[:, None].expand(-1, 8), features[src], reduce="amax")
attention = torch.exp(features[src].sum(1).clamp(max=5))
total = torch.zeros(n).index_add(0, dst, attention)[dst]
print(f"largest {largest.sum().item():.3f} attention {(attention / total).std().item():.4f}")
print("degrees", torch.bincount(dst, minlength=n)[:8].tolist())
