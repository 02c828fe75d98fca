"""Training from scratch with a seed, in many ways: losses, and what the generator draws next."""

import random

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Categorical, Normal
from torch.nn.utils import clip_grad_norm_, parametrizations
from torch.optim import lr_scheduler
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torch.utils.data import (
    DataLoader,
    Dataset,
    RandomSampler,
    TensorDataset,
    WeightedRandomSampler,
    random_split,
)

STEPS = 5


def seed(number):
    random.seed(number)
    np.random.seed(number)
    torch.manual_seed(number)


def show(name, *values):
    numbers = [v.item() if torch.is_tensor(v) else v for v in values]
    print(name, *(f"{number:.7g}" for number in numbers), f"next {torch.rand(1).item():.7g}")


def train(name, model, optimizer, batches, loss, schedule=None, clip=None):
    losses = []
    while len(losses) < STEPS:
        for batch in batches() if callable(batches) else batches:
            optimizer.zero_grad()
            value = loss(model, *batch)
            value.backward()
            if clip:
                clip_grad_norm_(model.parameters(), clip)
            optimizer.step()
            losses.append(value.item())
            if schedule:
                schedule.step()
            if len(losses) == STEPS:
                break
    show(name, *losses)
    return model


def classify(model, x, y):
    return F.cross_entropy(model(x), y)


class Augmented(Dataset):
    def __init__(self, x, y):
        self.x, self.y = x, y

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        x = self.x[i] + 0.1 * torch.randn(self.x[i].shape)
        return (x.flip(-1) if random.random() < 0.5 else x), self.y[i]


def dense():
    x, y = torch.randn(40, 8), torch.randint(0, 3, (40,))
    model = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.3))
    model.append(nn.Linear(16, 3))
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9, nesterov=True)
    loader = DataLoader(TensorDataset(x, y), 8, shuffle=True, drop_last=True)
    train("dense", model, optimizer, loader, classify, lr_scheduler.StepLR(optimizer, 2))


def images():
    data = Augmented(torch.rand(24, 3, 8, 8), torch.randint(0, 4, (24,)))
    model = nn.Sequential(
        nn.Conv2d(3, 6, 4, padding="same"), nn.GELU(), nn.FeatureAlphaDropout(0.2)
    )
    model.append(nn.FractionalMaxPool2d(2, output_ratio=0.6))
    model += nn.Sequential(nn.Conv2d(6, 4, 3), nn.RReLU(), nn.Flatten(), nn.LazyLinear(4))
    optimizer = torch.optim.AdamW(model.parameters(), 0.01, amsgrad=True)
    loader = DataLoader(data, 6, shuffle=True, num_workers=2)
    train("images", model, optimizer, loader, classify, lr_scheduler.OneCycleLR(optimizer, 0.02, 9))


def volumes():
    model = nn.Sequential(nn.Conv3d(1, 4, 3, padding=1), nn.GroupNorm(2, 4), nn.SiLU())
    noise = Noise()
    model += nn.Sequential(noise, nn.Dropout3d(0.2), nn.ConvTranspose3d(4, 1, 2, 2))
    optimizer = torch.optim.RMSprop(model.parameters(), 0.002, centered=True)
    pairs = [(torch.rand(2, 1, 4, 4, 4), torch.rand(2, 1, 8, 8, 8)) for _ in range(3)]
    train("volumes", model, optimizer, pairs, lambda m, x, y: F.smooth_l1_loss(m(x), y))


class Noise(nn.Module):
    def forward(self, x):
        return x + 0.2 * torch.randn_like(x)


class Words(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.embedding = nn.Embedding(12, 8, padding_idx=0, max_norm=1.0)
        self.layers = getattr(nn, kind)(8, 6, 2, dropout=0.2, bidirectional=True)
        self.out = nn.Linear(12, 12)

    def forward(self, x):
        return self.out(self.layers(self.embedding(x))[0])


def words(kind):
    model = Words(kind)
    optimizer = torch.optim.Adagrad(model.parameters(), 0.1, lr_decay=0.1)

    def loss(model, x):
        return F.cross_entropy(model(x[:-1]).flatten(0, 1), x[1:].flatten(), ignore_index=0)

    batches = [(torch.randint(0, 12, (7, 4)),) for _ in range(2)]
    train(f"words {kind}", model, optimizer, batches, loss, clip=0.5)


def attention():
    layer = nn.TransformerEncoderLayer(8, 2, 16, 0.1, "gelu", batch_first=True, norm_first=True)
    model = nn.Sequential(nn.TransformerEncoder(layer, 2, enable_nested_tensor=False))
    model.append(nn.MultiheadAttention(8, 2, 0.1, batch_first=True))
    out = nn.Linear(8, 5)
    parameters = [*model.parameters(), *out.parameters()]
    optimizer = torch.optim.NAdam(parameters, 0.005)

    def loss(model, x, y):
        hidden = model[0](x)
        mixed = model[1](hidden, hidden, hidden)[0]
        return F.cross_entropy(out(mixed).mean(1), y, label_smoothing=0.1)

    pairs = [(torch.randn(4, 6, 8), torch.randint(0, 5, (4,))) for _ in range(2)]
    schedule = lr_scheduler.CosineAnnealingWarmRestarts(optimizer, 2)
    train("attention", model, optimizer, pairs, loss, schedule)


def autoencoder():
    model = nn.ModuleDict({"encode": nn.Linear(10, 6), "decode": nn.Linear(3, 10)})
    optimizer = torch.optim.RAdam(model.parameters(), 0.05)

    def loss(model, x):
        mean, scale = model["encode"](x).chunk(2, 1)
        posterior = Normal(mean, F.softplus(scale) + 1e-3)
        logits = model["decode"](posterior.rsample())
        prior = torch.distributions.kl_divergence(posterior, Normal(0.0, 1.0)).sum(1).mean()
        return F.binary_cross_entropy_with_logits(logits, x) + 0.1 * prior

    train("autoencoder", model, optimizer, [(torch.rand(16, 10),)], loss)


def adversaries():
    generator = nn.Sequential(nn.ConvTranspose2d(4, 6, 3), nn.BatchNorm2d(6), nn.ReLU())
    generator += nn.Sequential(nn.ConvTranspose2d(6, 1, 4, 2, 1), nn.Tanh())
    critic = nn.Sequential(parametrizations.spectral_norm(nn.Conv2d(1, 4, 3)), nn.LeakyReLU(0.2))
    critic += nn.Sequential(nn.Flatten(), parametrizations.weight_norm(nn.Linear(64, 1)))
    ours = torch.optim.SGD(generator.parameters(), 0.05)
    theirs = torch.optim.SGD(critic.parameters(), 0.05)
    losses = []
    for _ in range(STEPS):
        real, fake = torch.rand(4, 1, 6, 6), generator(torch.randn(4, 4, 1, 1))
        mixed = torch.lerp(real, fake.detach(), torch.rand(4, 1, 1, 1)).requires_grad_()
        (slope,) = torch.autograd.grad(critic(mixed).sum(), mixed, create_graph=True)
        loss = critic(fake.detach()).mean() - critic(real).mean()
        loss = loss + 0.5 * (slope.flatten(1).norm(dim=1) - 1).pow(2).mean()
        theirs.zero_grad()
        loss.backward()
        theirs.step()
        ours.zero_grad()
        critic(fake).mean().neg().backward()
        ours.step()
        losses.append(loss.item())
    show("adversaries", *losses)


def actions():
    policy = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))
    optimizer = torch.optim.Adamax(policy.parameters(), 0.02)

    def loss(policy, states):
        choice = Categorical(logits=policy(states))
        acts = choice.sample()
        rewards = torch.rand(3)[acts] + torch.bernoulli(torch.full((len(acts),), 0.3))
        return -(choice.log_prob(acts) * rewards).mean() - 0.01 * choice.entropy().mean()

    train("actions", policy, optimizer, lambda: [(torch.randn(12, 4),)], loss)


def noise_and_choices():
    model = nn.Sequential(nn.Linear(5, 6), nn.Softsign(), nn.Linear(6, 4))
    optimizer = torch.optim.Adadelta(model.parameters(), weight_decay=0.01)

    def loss(model, x, y):
        hidden = torch.normal(model[0](x), 0.1) + model[0](x)
        choice = F.gumbel_softmax(model[2](model[1](hidden)), tau=1.2, hard=True)
        kept = torch.multinomial(torch.rand(len(x), 4), 2)
        return (choice - y).pow(2).gather(1, kept).mean() + 0.1 * model[2](hidden).abs().mean()

    train("noise", model, optimizer, [(torch.randn(9, 5), torch.rand(9, 4))], loss)


def samplers():
    data = TensorDataset(torch.randn(30, 4), torch.randint(0, 2, (30,)))
    first, second = random_split(data, [0.7, 0.3])
    loaders = [
        DataLoader(first, 5, sampler=RandomSampler(first, replacement=True)),
        DataLoader(second, 4, sampler=WeightedRandomSampler(torch.rand(9), 8)),
        DataLoader(data, 6, shuffle=True, generator=torch.Generator().manual_seed(3)),
    ]
    for number, loader in enumerate(loaders):
        model = nn.Sequential(nn.Linear(4, 6), nn.SELU(), nn.AlphaDropout(0.2), nn.Linear(6, 2))
        optimizer = torch.optim.ASGD(model.parameters(), 0.05)
        train(f"sampler {number}", model, optimizer, loader, classify)


def initial_values():
    model = nn.Sequential(nn.Conv2d(2, 4, 3), nn.Mish(), nn.Flatten(), nn.Linear(64, 6))
    model += nn.Sequential(nn.Hardswish(), parametrizations.orthogonal(nn.Linear(6, 6)))
    nn.init.kaiming_normal_(model[0].weight, mode="fan_out", nonlinearity="relu")
    nn.init.trunc_normal_(model[3].weight, std=0.05)
    nn.init.sparse_(model[3].weight.data[:, :20], 0.3)
    average = AveragedModel(model[:4], multi_avg_fn=get_ema_multi_avg_fn(0.8))
    optimizer = torch.optim.Adam(model.parameters(), 0.01, weight_decay=0.01)
    batch = torch.randn(5, 2, 6, 6), torch.randint(0, 6, (5,))

    def loss(model, x, y):
        average.update_parameters(model[:4])
        return F.multi_margin_loss(model(x), y, p=2)

    train("initial values", model, optimizer, [batch], loss)
    show("average", sum(p.double().abs().sum() for p in average.parameters()))


def whole_batches():
    model = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 2))
    optimizer = torch.optim.LBFGS(
        model.parameters(), 0.5, max_iter=4, line_search_fn="strong_wolfe"
    )
    x, y = torch.randn(12, 4), torch.randn(12, 2)
    losses = []

    def closure():
        optimizer.zero_grad()
        loss = F.huber_loss(model(x), y)
        loss.backward()
        return loss

    for _ in range(STEPS):
        losses.append(optimizer.step(closure))
    show("whole batches", *losses)


PARTS = (dense, images, volumes, lambda: words("LSTM"), lambda: words("GRU"), lambda: words("RNN"),
         attention, autoencoder, adversaries, actions, noise_and_choices, samplers, initial_values,
         whole_batches)  # fmt: skip
for number, part in enumerate(PARTS):
    seed(number)
    part()
