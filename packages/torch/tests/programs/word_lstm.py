"""A word language model: corpus, batches of columns, an LSTM, truncated backpropagation."""

import math

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


class Dictionary:
    def __init__(self):
        self.word2idx, self.idx2word = {}, []

    def add_word(self, word):
        if word not in self.word2idx:
            self.idx2word.append(word)
            self.word2idx[word] = len(self.idx2word) - 1
        return self.word2idx[word]

    def __len__(self):
        return len(self.idx2word)


def tokenize(dictionary, lines):
    idss = []
    for line in lines:
        words = [*line.split(), "<eos>"]
        idss.append(torch.tensor([dictionary.add_word(w) for w in words]).type(torch.int64))
    return torch.cat(idss)


class RNNModel(nn.Module):
    def __init__(self, rnn_type, ntoken, ninp, nhid, nlayers, dropout=0.5, tie_weights=False):
        super().__init__()
        self.ntoken = ntoken
        self.drop = nn.Dropout(dropout)
        self.encoder = nn.Embedding(ntoken, ninp)
        self.rnn = getattr(nn, rnn_type)(ninp, nhid, nlayers, dropout=dropout)
        self.decoder = nn.Linear(nhid, ntoken)
        if tie_weights:
            self.decoder.weight = self.encoder.weight
        self.rnn_type, self.nhid, self.nlayers = rnn_type, nhid, nlayers

    def forward(self, input, hidden):
        emb = self.drop(self.encoder(input))
        output, hidden = self.rnn(emb, hidden)
        decoded = self.decoder(self.drop(output)).view(-1, self.ntoken)
        return F.log_softmax(decoded, dim=1), hidden

    def init_hidden(self, bsz):
        weight = next(self.parameters())
        if self.rnn_type == "LSTM":
            return tuple(weight.new_zeros(self.nlayers, bsz, self.nhid) for _ in range(2))
        return weight.new_zeros(self.nlayers, bsz, self.nhid)


def batchify(data, bsz):
    nbatch = data.size(0) // bsz
    return data.narrow(0, 0, nbatch * bsz).view(bsz, -1).t().contiguous()


def repackage_hidden(h):
    if isinstance(h, torch.Tensor):
        return h.detach()
    return tuple(repackage_hidden(v) for v in h)


dictionary = Dictionary()
lines = ["the cat sat on the mat", "the dog sat on the log", "a cat and a dog sat"] * 12
train_data = batchify(tokenize(dictionary, lines), 8)
criterion = nn.NLLLoss()
for kind in ("LSTM", "GRU"):
    model = RNNModel(kind, len(dictionary), 16, 16, 2, dropout=0.0, tie_weights=True)
    rng = np.random.default_rng(3)
    for p in model.parameters():
        p.data = torch.from_numpy(rng.uniform(-0.2, 0.2, p.shape)).float()
    lr, bptt = 5.0, 10
    for epoch in range(8):
        model.train()
        total, hidden = 0.0, model.init_hidden(8)
        for i in range(0, train_data.size(0) - 1, bptt):
            n = min(bptt, len(train_data) - 1 - i)
            data, targets = train_data[i : i + n], train_data[i + 1 : i + 1 + n].view(-1)
            model.zero_grad()
            hidden = repackage_hidden(hidden)
            output, hidden = model(data, hidden)
            loss = criterion(output, targets)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.25)
            for p in model.parameters():
                p.data.add_(p.grad, alpha=-lr)
            total += n * loss.item()
        mean = total / (len(train_data) - 1)
        if epoch % 3 == 1:
            print(f"{kind} epoch {epoch} loss {mean:.4f} ppl {math.exp(mean):.2f}")
    model.rnn.flatten_parameters()
    hidden = model.init_hidden(1)
    word = torch.randint(len(dictionary), (1, 1), dtype=torch.long)
    words = []
    with torch.no_grad():
        for _ in range(10):
            output, hidden = model(word, hidden)
            weights = output.squeeze().div(1.0).exp().cpu()
            word.fill_(torch.multinomial(weights, 1)[0])
            words.append(dictionary.idx2word[int(word)])
    print("#", *words)
