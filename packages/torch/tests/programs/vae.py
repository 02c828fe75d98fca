"""A variational autoencoder with the reparametrisation trick."""

import numpy as np
import torch
import torch.utils.data
from torch import nn, optim
from torch.nn import functional as F

torch.manual_seed(1)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class VAE(nn.Module):
    def __init__(self):
        super(VAE, self).__init__()  # noqa: UP008 - the way many programs write it
        self.fc1 = nn.Linear(64, 40)
        self.fc21 = nn.Linear(40, 4)
        self.fc22 = nn.Linear(40, 4)
        self.fc3 = nn.Linear(4, 40)
        self.fc4 = nn.Linear(40, 64)

    def encode(self, x):
        h1 = F.relu(self.fc1(x))
        return self.fc21(h1), self.fc22(h1)

    def reparameterize(self, mu, logvar):
        std = torch.exp(0.5 * logvar)
        return mu + torch.randn_like(std) * std

    def decode(self, z):
        return torch.sigmoid(self.fc4(F.relu(self.fc3(z))))

    def forward(self, x):
        mu, logvar = self.encode(x.view(-1, 64))
        return self.decode(self.reparameterize(mu, logvar)), mu, logvar


def loss_function(recon_x, x, mu, logvar):
    bce = F.binary_cross_entropy(recon_x, x.view(-1, 64), reduction="sum")
    kld = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return bce + kld


rng = np.random.RandomState(0)
centres = rng.randint(1, 7, (256, 2))
grid = np.stack(np.meshgrid(np.arange(8), np.arange(8), indexing="ij"), -1)
pictures = np.exp(-((grid[None] - centres[:, None, None]) ** 2).sum(-1) / 2.0).astype("float32")
loader = torch.utils.data.DataLoader(
    torch.utils.data.TensorDataset(torch.from_numpy(pictures)), batch_size=64, shuffle=True
)
model = VAE().to(device)
optimizer = optim.Adam(model.parameters(), lr=1e-2)
history = []
for _epoch in range(30):
    model.train()
    train_loss = 0
    for (data,) in loader:
        data = data.to(device)
        optimizer.zero_grad()
        recon, mu, logvar = model(data)
        loss = loss_function(recon, data, mu, logvar)
        loss.backward()
        train_loss += loss.item()
        optimizer.step()
    history.append(train_loss / len(loader.dataset))
with torch.no_grad():
    sample = model.decode(torch.randn(16, 4).to(device)).cpu()
print("sample", tuple(sample.view(16, 1, 8, 8).shape), len(history))
print("# first and last loss", history[0], history[-1])
assert history[-1] < 0.75 * history[0]
assert sample.min() >= 0 and sample.max() <= 1
