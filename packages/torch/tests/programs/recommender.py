"""Neural collaborative filtering: embeddings, negative samples, ranking."""

import numpy as np
import torch
import torch.nn as nn
import torch.utils.data as data
from torch.utils.data import WeightedRandomSampler


class NCFData(data.Dataset):
    def __init__(self, positives, num_item, num_ng, rng):
        super().__init__()
        self.positives, self.num_item, self.num_ng, self.rng = positives, num_item, num_ng, rng
        self.ng_sample()

    def ng_sample(self):
        seen = {tuple(p) for p in self.positives}
        self.rows = [(u, i, 1.0) for u, i in self.positives]
        for u, _ in self.positives:
            for _ in range(self.num_ng):
                j = int(self.rng.integers(self.num_item))
                while (u, j) in seen:
                    j = int(self.rng.integers(self.num_item))
                self.rows.append((u, j, 0.0))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, idx):
        user, item, label = self.rows[idx]
        return user, item, np.float32(label)


class NCF(nn.Module):
    def __init__(self, user_num, item_num, factor_num=8):
        super().__init__()
        self.embed_user_GMF = nn.Embedding(user_num, factor_num)
        self.embed_item_GMF = nn.Embedding(item_num, factor_num)
        self.embed_user_MLP = nn.Embedding(user_num, factor_num)
        self.embed_item_MLP = nn.Embedding(item_num, factor_num)
        modules = []
        for size in (2 * factor_num, factor_num):
            modules += [nn.Dropout(p=0.0), nn.Linear(size, size // 2), nn.ReLU()]
        self.MLP_layers = nn.Sequential(*modules)
        self.predict_layer = nn.Linear(factor_num + factor_num // 2, 1)

    def forward(self, user, item):
        gmf = self.embed_user_GMF(user) * self.embed_item_GMF(item)
        mlp = torch.cat((self.embed_user_MLP(user), self.embed_item_MLP(item)), -1)
        both = torch.cat((gmf, self.MLP_layers(mlp)), -1)
        return self.predict_layer(both).view(-1)


rng = np.random.default_rng(0)
users, items = 24, 30
positives = [(u, i) for u in range(users) for i in range(items) if (u + i) % 6 == 0]
dataset = NCFData(positives, items, 3, rng)
model = NCF(users, items)
for name, p in model.named_parameters():
    scale = 0.3 if "embed" in name else 0.2
    p.data.copy_(torch.from_numpy(rng.normal(0, scale, p.shape)))
loader = data.DataLoader(dataset, batch_size=120, shuffle=False)
criterion = nn.BCEWithLogitsLoss(pos_weight=torch.tensor(3.0))
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
for epoch in range(20):
    for user, item, label in loader:
        model.zero_grad()
        loss = criterion(model(user, item), label)
        loss.backward()
        optimizer.step()
    if epoch % 4 == 0 and epoch < 10:
        print(f"{epoch} {loss.item():.4f}", user.dtype == torch.int64, label.dtype == torch.float)
hits = []
with torch.no_grad():
    for u in range(users):
        scores = model(torch.full((items,), u), torch.arange(items))
        _, best = torch.topk(scores, 5)
        wanted = {i for i in range(items) if (u + i) % 6 == 0}
        hits.append(len(wanted & set(best.numpy().tolist())) / 5)
print("# hits", np.mean(hits))
assert np.mean(hits) > 0.5, np.mean(hits)

sampler = WeightedRandomSampler([4.0 if row[2] else 1.0 for row in dataset.rows], 400)
drawn = torch.cat([label for _, _, label in data.DataLoader(dataset, 50, sampler=sampler)])
assert 0.4 < drawn.mean().item() < 0.75, drawn.mean()
bag = nn.EmbeddingBag(10, 3, mode="mean")
bag.weight.data.copy_(torch.arange(30.0).view(10, 3))
print(bag(torch.tensor([1, 2, 4, 5, 4]), torch.tensor([0, 3])).tolist())
train, valid = data.random_split(dataset, [0.8, 0.2], generator=torch.Generator().manual_seed(0))
print(len(train), len(valid), len(set(train.indices) & set(valid.indices)))
