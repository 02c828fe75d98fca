"""The spellings of older programs: tensor types, Variable, .data, volatile loops."""

import numpy as np
import torch
import torch.nn as nn
from torch.autograd import Variable

rng = np.random.RandomState(0)
use_cuda = torch.cuda.is_available()
FloatTensor = torch.cuda.FloatTensor if use_cuda else torch.FloatTensor
LongTensor = torch.cuda.LongTensor if use_cuda else torch.LongTensor
ByteTensor = torch.cuda.ByteTensor if use_cuda else torch.ByteTensor
dtype = FloatTensor

N, D_in, H, D_out = 16, 10, 8, 2
x = Variable(torch.from_numpy(rng.randn(N, D_in)).type(dtype))
y = Variable(torch.from_numpy(rng.randn(N, D_out)).type(dtype), requires_grad=False)
w1 = Variable(torch.from_numpy(rng.randn(D_in, H)).type(dtype), requires_grad=True)
w2 = Variable(torch.from_numpy(rng.randn(H, D_out)).type(dtype), requires_grad=True)
for t in range(40):
    loss = (x.mm(w1).clamp(min=0).mm(w2) - y).pow(2).sum()
    if t % 10 == 0:
        print(t, f"{loss.data.item():.3f}")
    loss.backward()
    w1.data -= 1e-3 * w1.grad.data
    w2.data -= 1e-3 * w2.grad.data
    w1.grad.data.zero_()
    w2.grad.data.zero_()

print(x.type(), LongTensor([1, 2]).type(), torch.ByteTensor([0, 1]).type(), y.data.type())
print(isinstance(x, torch.FloatTensor), isinstance(x, torch.LongTensor), isinstance(x, Variable))
print(torch.is_tensor(x), torch.Tensor(2, 3).size() == torch.Size([2, 3]), torch.Tensor([3]).item())
print(FloatTensor(3).fill_(1.5).tolist(), torch.IntTensor(2, 2).zero_().tolist())
print(x.new(2, 2).zero_().type(), x.new([1, 2]).tolist(), torch.LongTensor([7]).new(1).type())
print(torch.ones(2).type_as(LongTensor([1])).type(), torch.ones(2).double().type())
print(torch.ones(1).type("torch.IntTensor").dtype == torch.int, torch.zeros(2).long().type())
mask = ByteTensor([1, 0, 1])
values = FloatTensor([1, 2, 3])
print(values[mask.bool()].tolist(), values.masked_select(mask.bool()).sum().item())
print(values.masked_fill(mask.bool(), -1e9).max().item())
torch.set_default_tensor_type("torch.DoubleTensor")
print(torch.zeros(1).type(), torch.nn.Linear(1, 1).weight.type())
torch.set_default_tensor_type(torch.FloatTensor)
print(torch.zeros(1).type(), torch.get_default_dtype() == torch.float32)
model = nn.Linear(3, 1)
model.weight.data.fill_(0.5)
model.bias.data.zero_()
print(model(Variable(torch.Tensor([[1, 2, 3]]))).data[0][0].item())
model.type(torch.DoubleTensor)
print(model.weight.type(), model.float().weight.data.type())
params = list(model.parameters())
print(len(params), list(params[0].size()), torch.numel(params[0]))
print(torch.max(values, 0)[1].item(), torch.sort(values, 0, True)[0].tolist())
print(np.asarray(values).dtype, values.numpy().sum(), torch.typename(values))
print(torch.range(1, 4).tolist(), torch.arange(0, 4).type())
