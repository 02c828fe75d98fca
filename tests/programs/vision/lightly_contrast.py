"""lightly: losses and heads of self-supervised learning, a projection trained 10 steps."""

import torch
from lightly import loss as losses
from lightly.models import modules
from lightly.models.utils import deactivate_requires_grad, random_token_mask, update_momentum
from recording import array, fill, record

one, two = array(0, 8, 16).requires_grad_(), array(1, 8, 16)
for name, measure in {
    "ntxent": losses.NTXentLoss(),
    "barlow": losses.BarlowTwinsLoss(),
    "vicreg": losses.VICRegLoss(),
    "cosine": losses.NegativeCosineSimilarity(),
    "dcl": losses.DCLLoss(),
    "tico": losses.TiCoLoss(),
}.items():
    one.grad = None
    value = measure(one, two)
    value.backward()
    record(name, value)
    record(f"{name} gradient", one.grad)
student, teacher = (
    fill(modules.DINOProjectionHead(16, 32, 8, 24)),
    modules.DINOProjectionHead(16, 32, 8, 24),
)
teacher.load_state_dict(student.state_dict())
deactivate_requires_grad(teacher)
measure = losses.DINOLoss(output_dim=24, warmup_teacher_temp_epochs=2)
optimizer = torch.optim.SGD(student.parameters(), 0.05, momentum=0.9)
values = []
for _ in range(10):
    update_momentum(student, teacher, 0.9)
    output = [student(one.detach()), student(two)]
    value = measure([teacher(one.detach()), teacher(two)], output, epoch=1)
    optimizer.zero_grad()
    value.backward()
    optimizer.step()
    values.append(value.item())
record("losses", values)
torch.manual_seed(0)
record("mask", random_token_mask((2, 17), mask_ratio=0.5))
