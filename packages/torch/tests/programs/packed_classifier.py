"""Sentences of several lengths: packed sequences, a bidirectional GRU, an attention pool."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence
from torch.utils.data import DataLoader, Dataset

PAD = 0
rng = np.random.default_rng(0)


class Sentences(Dataset):
    def __init__(self, count):
        self.items = []
        for _ in range(count):
            length = int(rng.integers(3, 9))
            words = rng.integers(2, 12, length)
            self.items.append((words, int((words > 6).mean() > 0.5)))

    def __getitem__(self, i):
        words, label = self.items[i]
        return torch.tensor(words, dtype=torch.long), label

    def __len__(self):
        return len(self.items)


def collate_batch(batch):
    batch.sort(key=lambda item: len(item[0]), reverse=True)
    texts, labels = zip(*batch, strict=True)
    lengths = torch.tensor([len(t) for t in texts])
    return pad_sequence(texts, batch_first=True, padding_value=PAD), lengths, torch.tensor(labels)


class Classifier(nn.Module):
    def __init__(self, vocab, emb, hidden, classes):
        super().__init__()
        self.embedding = nn.Embedding(vocab, emb, padding_idx=PAD)
        self.rnn = nn.GRU(emb, hidden, num_layers=2, bidirectional=True, batch_first=True)
        self.score = nn.Linear(2 * hidden, 1)
        self.fc = nn.Linear(2 * hidden, classes)

    def forward(self, text, lengths):
        packed = pack_padded_sequence(self.embedding(text), lengths.cpu(), batch_first=True)
        packed_out, hidden = self.rnn(packed)
        out, out_lengths = pad_packed_sequence(packed_out, batch_first=True)
        assert torch.equal(out_lengths, lengths) and hidden.shape[0] == 4
        mask = torch.arange(out.size(1))[None, :] < lengths[:, None]
        scores = self.score(out).squeeze(-1).masked_fill(~mask, float("-inf"))
        pooled = (F.softmax(scores, dim=1).unsqueeze(-1) * out).sum(1)
        return self.fc(pooled)


data = Sentences(64)
loader = DataLoader(data, batch_size=16, collate_fn=collate_batch)
model = Classifier(12, 8, 8, 2)
for _name, p in model.named_parameters():
    p.data.copy_(torch.from_numpy(rng.uniform(-0.3, 0.3, p.shape)))
model.embedding.weight.data[PAD].zero_()
optimizer = torch.optim.NAdam(model.parameters(), lr=0.01)
for epoch in range(6):
    total, right = 0.0, 0
    for text, lengths, labels in loader:
        optimizer.zero_grad()
        out = model(text, lengths)
        loss = F.cross_entropy(out, labels)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5)
        optimizer.step()
        total += loss.item() * len(labels)
        right += (out.argmax(1) == labels).sum().item()
    if epoch % 2 == 0:
        print(f"epoch {epoch} loss {total / len(data):.4f}")
print("pad stays", model.embedding.weight[PAD].abs().sum().item())
print("# right", right)
lstm = nn.LSTM(3, 4, batch_first=True, proj_size=2)
out, (h, c) = lstm(torch.zeros(2, 5, 3))
print(tuple(out.shape), tuple(h.shape), tuple(c.shape))
cell, hx, cx = nn.LSTMCell(3, 4), torch.zeros(2, 4), torch.zeros(2, 4)
for t in range(3):
    hx, cx = cell(torch.ones(2, 3) * t, (hx, cx))
print(tuple(hx.shape), sorted(n for n, _ in model.rnn.named_parameters())[:3])
