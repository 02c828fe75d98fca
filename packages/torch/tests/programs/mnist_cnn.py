"""A convolutional classifier with the usual command line, schedule, training and test loops."""

import argparse

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import DataLoader, Dataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, 1)
        self.conv2 = nn.Conv2d(8, 16, 3, 1)
        self.dropout1 = nn.Dropout(0.1)
        self.fc1 = nn.Linear(16 * 4 * 4, 32)
        self.fc2 = nn.Linear(32, 10)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = F.relu(self.conv2(x))
        x = F.max_pool2d(x, 2)
        x = self.dropout1(x)
        x = torch.flatten(x, 1)
        x = F.relu(self.fc1(x))
        return F.log_softmax(self.fc2(x), dim=1)


class Digits(Dataset):
    """Ten fixed patterns of 12 by 12 with noise."""

    def __init__(self, count, seed, transform=None):
        patterns = np.random.RandomState(0).rand(10, 12, 12) > 0.5
        rng = np.random.RandomState(seed)
        self.targets = rng.randint(0, 10, count)
        noise = rng.normal(0, 0.3, (count, 12, 12))
        self.data = (patterns[self.targets] + noise).astype(np.float32)
        self.transform = transform

    def __len__(self):
        return len(self.data)

    def __getitem__(self, index):
        picture = torch.from_numpy(self.data[index]).unsqueeze(0)
        if self.transform is not None:
            picture = self.transform(picture)
        return picture, int(self.targets[index])


def train(args, model, device, loader, optimizer, epoch):
    model.train()
    for batch_idx, (data, target) in enumerate(loader):
        data, target = data.to(device), target.to(device)
        optimizer.zero_grad()
        loss = F.nll_loss(model(data), target)
        loss.backward()
        optimizer.step()
        if batch_idx % args.log_interval == 0:
            done = 100.0 * batch_idx / len(loader)
            print(f"# Train Epoch: {epoch} ({done:.0f}%)\tLoss: {loss.item():.6f}")


def test(model, device, loader):
    model.eval()
    test_loss, correct = 0, 0
    with torch.no_grad():
        for data, target in loader:
            data, target = data.to(device), target.to(device)
            output = model(data)
            test_loss += F.nll_loss(output, target, reduction="sum").item()
            pred = output.argmax(dim=1, keepdim=True)
            correct += pred.eq(target.view_as(pred)).sum().item()
    count = len(loader.dataset)
    print(f"# Test set: average loss {test_loss / count:.4f}, accuracy {correct}/{count}")
    return correct / count


def main():
    parser = argparse.ArgumentParser(description="digits")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--lr", type=float, default=1.0)
    parser.add_argument("--gamma", type=float, default=0.7)
    parser.add_argument("--no-cuda", action="store_true", default=False)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--log-interval", type=int, default=10)
    args = parser.parse_args()
    use_cuda = not args.no_cuda and torch.cuda.is_available()
    torch.manual_seed(args.seed)
    device = torch.device("cuda" if use_cuda else "cpu")
    kwargs = {"num_workers": 1, "pin_memory": True} if use_cuda else {}
    train_loader = DataLoader(
        Digits(512, 1, transform=lambda x: (x - 0.5) / 0.5),
        batch_size=args.batch_size,
        shuffle=True,
        **kwargs,
    )
    test_loader = DataLoader(Digits(256, 2, lambda x: (x - 0.5) / 0.5), batch_size=100, **kwargs)
    model = Net().to(device)
    optimizer = optim.Adadelta(model.parameters(), lr=args.lr)
    scheduler = StepLR(optimizer, step_size=1, gamma=args.gamma)
    for epoch in range(1, args.epochs + 1):
        train(args, model, device, train_loader, optimizer, epoch)
        accuracy = test(model, device, test_loader)
        scheduler.step()
    print("parameters", sum(p.numel() for p in model.parameters() if p.requires_grad))
    print(f"learning rate {optimizer.param_groups[0]['lr']:.4f}")
    assert accuracy > 0.95, accuracy


if __name__ == "__main__":
    main()
