"""Encoder, attention and decoder learn to reverse short sequences."""

import random

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import optim

SOS, EOS, LENGTH, VOCAB, HIDDEN = 0, 1, 5, 10, 24


class EncoderRNN(nn.Module):
    def __init__(self, input_size, hidden_size):
        super().__init__()
        self.hidden_size = hidden_size
        self.embedding = nn.Embedding(input_size, hidden_size)
        self.gru = nn.GRU(hidden_size, hidden_size, batch_first=True, bidirectional=False)

    def forward(self, input):
        return self.gru(self.embedding(input))


class BahdanauAttention(nn.Module):
    def __init__(self, hidden_size):
        super().__init__()
        self.Wa = nn.Linear(hidden_size, hidden_size)
        self.Ua = nn.Linear(hidden_size, hidden_size)
        self.Va = nn.Linear(hidden_size, 1)

    def forward(self, query, keys):
        scores = self.Va(torch.tanh(self.Wa(query) + self.Ua(keys)))
        weights = F.softmax(scores.squeeze(2).unsqueeze(1), dim=-1)
        return torch.bmm(weights, keys), weights


class AttnDecoderRNN(nn.Module):
    def __init__(self, hidden_size, output_size):
        super().__init__()
        self.embedding = nn.Embedding(output_size, hidden_size)
        self.attention = BahdanauAttention(hidden_size)
        self.gru = nn.GRU(2 * hidden_size, hidden_size, batch_first=True)
        self.out = nn.Linear(hidden_size, output_size)

    def forward(self, encoder_outputs, encoder_hidden, target=None):
        batch = encoder_outputs.size(0)
        step = torch.empty(batch, 1, dtype=torch.long).fill_(SOS)
        hidden, outputs, attentions = encoder_hidden, [], []
        for i in range(LENGTH):
            query = hidden.permute(1, 0, 2)
            context, weights = self.attention(query, encoder_outputs)
            x = torch.cat((self.embedding(step), context), dim=2)
            output, hidden = self.gru(x, hidden)
            outputs.append(self.out(output))
            attentions.append(weights)
            if target is not None and random.random() < 0.5:
                step = target[:, i].unsqueeze(1)
            else:
                _, topi = outputs[-1].topk(1)
                step = topi.squeeze(-1).detach()
        out = F.log_softmax(torch.cat(outputs, dim=1), dim=-1)
        return out, hidden, torch.cat(attentions, dim=1)


random.seed(0)
rng = np.random.default_rng(1)
encoder, decoder = EncoderRNN(VOCAB, HIDDEN), AttnDecoderRNN(HIDDEN, VOCAB)
for module in (encoder, decoder):
    for name, p in module.named_parameters():
        scale = 0.5 if "embedding" in name else 0.2
        p.data.copy_(torch.from_numpy(rng.uniform(-scale, scale, p.shape)))
pairs = rng.integers(2, VOCAB, (64, LENGTH))
source = torch.from_numpy(pairs)
target = torch.from_numpy(pairs[:, ::-1].copy())
optimizers = [optim.Adam(m.parameters(), lr=0.01) for m in (encoder, decoder)]
criterion = nn.NLLLoss()
for step in range(60):
    for o in optimizers:
        o.zero_grad()
    out, _, attention = decoder(*encoder(source), target)
    loss = criterion(out.view(-1, out.size(-1)), target.reshape(-1))
    loss.backward()
    for o in optimizers:
        o.step()
    if step < 20 and step % 5 == 0:
        print(f"step {step} loss {loss.item():.3f}")
print("attention", tuple(attention.shape), f"{attention.sum(-1).mean().item():.4f}")
assert loss.item() < 0.9, loss.item()
