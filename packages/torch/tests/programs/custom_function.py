"""Functions with derivatives of their own, checked, and used within modules."""

import numpy as np
import torch
from torch.autograd import Function, gradcheck, gradgradcheck


class Exp(Function):
    @staticmethod
    def forward(ctx, i):
        result = i.exp()
        ctx.save_for_backward(result)
        return result

    @staticmethod
    def backward(ctx, grad_output):
        (result,) = ctx.saved_tensors
        return grad_output * result


class LinearFunction(Function):
    @staticmethod
    def forward(ctx, input, weight, bias=None):
        ctx.save_for_backward(input, weight, bias)
        output = input.mm(weight.t())
        if bias is not None:
            output += bias.unsqueeze(0).expand_as(output)
        return output

    @staticmethod
    def backward(ctx, grad_output):
        input, weight, bias = ctx.saved_tensors
        grad_input = grad_weight = grad_bias = None
        if ctx.needs_input_grad[0]:
            grad_input = grad_output.mm(weight)
        if ctx.needs_input_grad[1]:
            grad_weight = grad_output.t().mm(input)
        if bias is not None and ctx.needs_input_grad[2]:
            grad_bias = grad_output.sum(0)
        return grad_input, grad_weight, grad_bias


class Binarize(Function):
    """The sign, with the derivative of a clipped identity."""

    @staticmethod
    def forward(ctx, x, limit):
        ctx.limit = limit
        ctx.save_for_backward(x)
        return x.sign()

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * (x.abs() <= ctx.limit).to(grad_output.dtype), None


class Split(Function):
    @staticmethod
    def forward(ctx, x):
        low, high = x.clamp(max=0), x.clamp(min=0)
        indices = x.argsort()
        ctx.mark_non_differentiable(indices)
        return low, high, indices

    @staticmethod
    def backward(ctx, g_low, g_high, _):
        return g_low + g_high


linear = LinearFunction.apply
rng = np.random.default_rng(0)
args = [
    torch.from_numpy(rng.normal(size=s)).double().requires_grad_() for s in ((4, 3), (2, 3), (2,))
]
print("linear", gradcheck(linear, args, eps=1e-6, atol=1e-4))
print("second order", gradgradcheck(Exp.apply, (args[0],)))


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.from_numpy(rng.uniform(-0.5, 0.5, (2, 3))))
        self.bias = torch.nn.Parameter(torch.zeros(2).double())

    def forward(self, x):
        return linear(x, self.weight, self.bias)

    def extra_repr(self):
        return f"{self.weight.shape[1]}, {self.weight.shape[0]}"


layer = Layer()
print(layer)
target = torch.from_numpy(np.sign(rng.normal(size=(4, 2))))
optimizer = torch.optim.SGD(layer.parameters(), lr=0.2)
for _ in range(30):
    optimizer.zero_grad()
    loss = (Binarize.apply(layer(args[0].detach()), 1.0) - target).pow(2).mean()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.4f} grad {layer.weight.grad.norm().item():.4f}")
low, high, indices = Split.apply(args[0])
(low * 2 + high * 3).sum().backward()
print(indices.requires_grad, args[0].grad.sum().item())
