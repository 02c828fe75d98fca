"""A residual network: initial weights, batch norm statistics, SGD with momentum and a schedule."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


def conv3x3(in_planes, out_planes, stride=1):
    return nn.Conv2d(in_planes, out_planes, kernel_size=3, stride=stride, padding=1, bias=False)


class BasicBlock(nn.Module):
    expansion = 1

    def __init__(self, inplanes, planes, stride=1, downsample=None):
        super().__init__()
        self.conv1 = conv3x3(inplanes, planes, stride)
        self.bn1 = nn.BatchNorm2d(planes)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = conv3x3(planes, planes)
        self.bn2 = nn.BatchNorm2d(planes)
        self.downsample = downsample

    def forward(self, x):
        identity = x if self.downsample is None else self.downsample(x)
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += identity
        return self.relu(out)


class ResNet(nn.Module):
    def __init__(self, block, layers, num_classes=4):
        super().__init__()
        self.inplanes = 8
        self.conv1 = nn.Conv2d(3, 8, kernel_size=3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(8)
        self.maxpool = nn.MaxPool2d(kernel_size=3, stride=2, padding=1)
        self.layer1 = self._make_layer(block, 8, layers[0])
        self.layer2 = self._make_layer(block, 16, layers[1], stride=2)
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(16 * block.expansion, num_classes)
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")
            elif isinstance(m, (nn.BatchNorm2d, nn.GroupNorm)):
                nn.init.constant_(m.weight, 1)
                nn.init.constant_(m.bias, 0)

    def _make_layer(self, block, planes, blocks, stride=1):
        downsample = None
        if stride != 1 or self.inplanes != planes * block.expansion:
            downsample = nn.Sequential(
                nn.Conv2d(self.inplanes, planes * block.expansion, 1, stride, bias=False),
                nn.BatchNorm2d(planes * block.expansion),
            )
        layers = [block(self.inplanes, planes, stride, downsample)]
        self.inplanes = planes * block.expansion
        layers.extend(block(self.inplanes, planes) for _ in range(1, blocks))
        return nn.Sequential(*layers)

    def forward(self, x):
        x = self.maxpool(F.relu(self.bn1(self.conv1(x))))
        x = self.layer2(self.layer1(x))
        return self.fc(torch.flatten(self.avgpool(x), 1))


def accuracy(output, target, topk=(1,)):
    with torch.no_grad():
        _, pred = output.topk(max(topk), 1, True, True)
        correct = pred.t().eq(target.view(1, -1).expand_as(pred.t()))
        return [correct[:k].reshape(-1).float().sum(0).mul_(100.0 / len(target)) for k in topk]


torch.manual_seed(0)
model = ResNet(BasicBlock, [2, 2])
fan = model.layer1[0].conv1.weight
assert abs(fan.std().item() - (2 / (8 * 9)) ** 0.5) < 0.05
rng = np.random.default_rng(0)
state = model.state_dict()
for name, value in state.items():
    if value.dim() == 4:
        bound = (2 / (value.size(0) * value.size(2) * value.size(3))) ** 0.5
        state[name] = torch.tensor(rng.normal(0, bound, value.shape), dtype=torch.float32)
    elif name == "fc.weight":
        state[name] = torch.tensor(rng.normal(0, 0.2, value.shape), dtype=torch.float32)
    elif name == "fc.bias":
        state[name] = torch.zeros_like(value)
print(model.load_state_dict(state))
images = torch.from_numpy(rng.normal(size=(32, 3, 16, 16)).astype(np.float32))
target = torch.from_numpy(rng.integers(0, 4, 32))
images[torch.arange(32), 0, :, 0] += target.float()[:, None] * 3
criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
optimizer = torch.optim.SGD(
    model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4, nesterov=True
)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=12)
for step in range(12):
    output = model(images)
    loss = criterion(output, target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
    if step % 3 == 0:
        print(f"{step} loss {loss.item():.3f} lr {scheduler.get_last_lr()[0]:.4f}")
model.eval()
with torch.no_grad():
    acc1, acc2 = accuracy(model(images), target, topk=(1, 2))
print("keys", len(state), "tracked", model.bn1.num_batches_tracked.item())
print(f"running mean {model.bn1.running_mean.abs().mean().item():.3f}")
assert acc2 >= acc1 > 30
