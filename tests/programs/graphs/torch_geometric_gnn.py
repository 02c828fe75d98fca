"""torch-geometric: GCN and GAT trained 20 steps, EdgeIndex, batches, pooling, neighbours."""

import torch
import torch_geometric.nn as gnn
from recording import array, fill, record
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.utils import add_self_loops, degree, softmax, to_undirected

edges = torch.tensor([[i, (i * 3 + 1) % 20] for i in range(20)] + [[i, i // 2] for i in range(20)])
edges = to_undirected(edges.t().contiguous())
x, y = array(0, 20, 8), torch.arange(20) % 3
record("edges", edges)


class Net(torch.nn.Module):
    def __init__(self, kind, **options):
        super().__init__()
        self.one = kind(8, 16, **options)
        self.two = kind(16, 3)

    def forward(self, x, edges):
        return self.two(self.one(x, edges).relu(), edges)


for name, model in {
    "gcn": Net(gnn.GCNConv),
    "gat": Net(gnn.GATConv, heads=4, concat=False),
    "sage": Net(gnn.SAGEConv, aggr="max"),
}.items():
    model = fill(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    losses = []
    for _ in range(20):
        loss = torch.nn.functional.cross_entropy(model(x, edges), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    record(f"{name} losses", losses)
    record(f"{name} trained", dict(model.named_parameters()))

graphs = [
    Data(x=array(i, 4 + i, 8), edge_index=edges[:, edges.max(0)[0] < 4 + i]) for i in range(6)
]
for number, batch in enumerate(DataLoader(graphs, batch_size=3)):
    record(f"batch {number}", batch.batch)
    hidden = fill(gnn.GINConv(torch.nn.Linear(8, 5)))(batch.x, batch.edge_index)
    record(f"mean {number}", gnn.global_mean_pool(hidden, batch.batch))
    record(f"max {number}", gnn.global_max_pool(hidden, batch.batch))
    record(f"kept {number}", fill(gnn.TopKPooling(5, 0.5))(hidden, batch.edge_index)[0].shape)
record("softmax", softmax(array(9, edges.shape[1]), edges[1]))
record("degree", degree(edges[1]))
record("loops", add_self_loops(edges)[0])

from torch_geometric import EdgeIndex  # noqa: E402

index = EdgeIndex(edges, sparse_size=(20, 20), sort_order="row")
record("pointers", index.get_csr()[0][0])
record("product", index @ x)
