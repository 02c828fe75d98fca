"""Tensor classes and modes: units, logs, boxes, masks by a wrapper, and counted operations."""

import copy
import io
import pickle

import torch
import torch.nn.functional as F
from torch import nn
from torch.overrides import (
    TorchFunctionMode,
    handle_torch_function,
    has_torch_function,
    is_tensor_like,
    wrap_torch_function,
)
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.data import DataLoader

HANDLED = {}


def implements(*functions):
    def register(f):
        HANDLED.update(dict.fromkeys(functions, f))
        return f

    return register


class Quantity:
    """Not a tensor: values with a unit, by functions that it implements."""

    def __init__(self, values, unit):
        self.values, self.unit = torch.as_tensor(values), unit

    def __repr__(self):
        return f"Quantity({self.values.tolist()}, {self.unit})"

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func not in HANDLED or not all(issubclass(t, (cls, torch.Tensor)) for t in types):
            return NotImplemented
        return HANDLED[func](*args, **(kwargs or {}))


@implements(torch.add, torch.Tensor.add)
def add(a, b):
    if not isinstance(a, Quantity) or not isinstance(b, Quantity) or a.unit != b.unit:
        raise ValueError("units differ")
    return Quantity(a.values + b.values, a.unit)


@implements(torch.mul, torch.Tensor.mul)
def mul(a, b):
    first = a if isinstance(a, Quantity) else Quantity(a, "")
    second = b if isinstance(b, Quantity) else Quantity(b, "")
    return Quantity(first.values * second.values, f"{first.unit}{second.unit}")


@implements(torch.stack)
def stack(parts, dim=0):
    return Quantity(torch.stack([p.values for p in parts], dim), parts[0].unit)


@implements(torch.sum)
def total(a, dim=None):
    return Quantity(a.values.sum(), a.unit)


@implements(F.softmax)
def softmax(a, dim=None, _stacklevel=3, dtype=None):
    return F.softmax(a.values, dim)


def units():
    a, b = Quantity([1.0, 2.0], "m"), Quantity([3.0, 4.0], "m")
    print(torch.add(a, b), torch.mul(a, b), torch.sum(a), torch.stack([a, b]))
    print(torch.mul(torch.tensor([2.0, 2.0]), a), torch.tensor([2.0, 2.0]) * a)
    print(F.softmax(a, dim=0).sum().item())
    for call in (lambda: torch.add(a, Quantity([1.0, 1.0], "s")), lambda: torch.relu(a)):
        try:
            call()
        except (TypeError, ValueError) as error:
            print(type(error).__name__, "relu" in str(error))
    print(is_tensor_like(a), is_tensor_like(3), has_torch_function((a,)), has_torch_function((3,)))


class Logged(torch.Tensor):
    """A tensor that notes the functions that it takes part in."""

    log = []  # noqa: RUF012

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        self = getattr(func, "__self__", None)
        name = getattr(self, "__name__", None) or getattr(func, "__name__", "?")
        kinds = [type(a).__name__ for a in args]
        cls.log.append(f"{name}({', '.join(kinds)}{', ' * bool(kwargs)}{kwargs or ''})")
        return super().__torch_function__(func, types, args, kwargs)


def show():
    print("  " + "; ".join(Logged.log))
    Logged.log.clear()


def logs():
    x = torch.arange(4.0).reshape(2, 2).as_subclass(Logged)
    results = [x + 1, 1 + x, x - 1, 1 - x, x * x, 2 / x, x // 2, x % 2, 2**x, x @ x, -x, abs(x)]
    show()
    results += [x == 1, x != 1, x < 1, x >= 1, x[0], x[:, 1], x.T, x.mT]
    show()
    print({type(r).__name__ for r in results}, [r.sum().item() for r in results[:3]])
    Logged.log.clear()
    print(tuple(x.shape), x.dtype == torch.float32, x.ndim, x.requires_grad, len(x), x.numel())
    show()
    print(bool(x.sum() > 0), float(x.sum()), int(x.max()), x.sum().item(), x.tolist())
    show()
    r = [F.relu(x), F.softmax(x, 0), torch.stack([x, x]), torch.cat((x, torch.ones(1, 2)))]
    show()
    print([type(each).__name__ for each in r])
    values, indices = x.max(0)
    parts = x.split(1)
    print(type(values).__name__, type(indices).__name__, {type(p).__name__ for p in parts})
    show()
    x[0, 0] = 7
    x += 1
    x.requires_grad = True
    show()
    y = (x * x).sum()
    y.backward()
    print(type(y).__name__, y.item(), x.grad.tolist())
    Logged.log.clear()
    with torch._C.DisableTorchFunctionSubclass():
        print(type(x * 2).__name__, type(x[0]).__name__)
    show()
    print([type(each).__name__ for each in x])


class Plain(torch.Tensor):
    """A class with nothing of its own."""


class Shouting(Plain):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        print("  !", func.__name__, [t.__name__ for t in types])
        return super().__torch_function__(func, types, args, kwargs)


class Silent(torch.Tensor):
    __torch_function__ = torch._C._disabled_torch_function_impl


def precedence():
    a, b = torch.ones(2).as_subclass(Plain), torch.ones(2).as_subclass(Shouting)
    c = torch.ones(2).as_subclass(Silent)
    print(type(a + b).__name__, type(b + a).__name__, type(a + 1).__name__, type(c + 1).__name__)
    print(
        type(torch.add(torch.ones(2), b)).__name__, type(a.detach()).__name__, type(a.data).__name__
    )
    w = torch.nn.Parameter(torch.ones(2))
    print(type(w + 1).__name__, type(w * a).__name__)
    x = torch.ones(2, requires_grad=True)
    y = x.as_subclass(Plain) * 3
    y.sum().backward()
    print(x.grad.tolist(), type(y).__name__)


class Boxes(torch.Tensor):
    """Bounding boxes with a format and the size of their picture; functions give plain tensors."""

    format: str
    canvas_size: tuple

    def __new__(cls, data, *, format, canvas_size):
        boxes = torch.as_tensor(data, dtype=torch.float32).as_subclass(cls)
        boxes.format, boxes.canvas_size = format, canvas_size
        return boxes

    @classmethod
    def wrap(cls, tensor, like):
        return cls(tensor, format=like.format, canvas_size=like.canvas_size)

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if not all(issubclass(cls, t) for t in types):
            return NotImplemented
        with torch._C.DisableTorchFunctionSubclass():
            output = func(*args, **(kwargs or {}))
        if func in {torch.Tensor.clone, torch.Tensor.to, torch.Tensor.detach}:
            with torch._C.DisableTorchFunctionSubclass():
                return cls.wrap(output, args[0])
        if isinstance(output, cls):
            return output.as_subclass(torch.Tensor)
        return output

    def __repr__(self, *, tensor_contents=None):
        return f"Boxes({self.tolist()}, {self.format}, {self.canvas_size})"


def boxes():
    b = Boxes([[0, 1, 4, 5], [2, 2, 3, 8]], format="XYXY", canvas_size=(10, 12))
    print(b, type(b + 1).__name__, type(b[0]).__name__)
    print(b.clone(), b.to(torch.float64).dtype == torch.float64, type(b.detach()).__name__)
    b.add_(1)
    print(type(b).__name__, b.tolist(), tuple(b.shape), b.is_floating_point())
    print(type(torch.stack([b, b])).__name__, type(b.reshape(-1)).__name__)
    print(type(torch.Tensor(b)).__name__, isinstance(b, torch.Tensor))
    batch = next(iter(DataLoader([b, b], batch_size=2)))
    print(type(batch).__name__, tuple(batch.shape))


class Masked(torch.Tensor):
    """A wrapper subclass: values and a mask of those that count."""

    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, values, mask):
        return torch.Tensor._make_wrapper_subclass(
            cls, values.shape, dtype=values.dtype, device=values.device,
            requires_grad=values.requires_grad,
        )  # fmt: skip

    def __init__(self, values, mask):
        self.values, self.mask = values, mask

    def __repr__(self):
        return f"Masked({self.values.masked_fill(~self.mask, 0).tolist()}, {self.mask.tolist()})"

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = func.overloadpacket
        aten = torch.ops.aten
        if name in (aten.add, aten.mul, aten.sub):
            a, b = args[:2]
            mask = a.mask if isinstance(a, cls) else b.mask
            if isinstance(a, cls) and isinstance(b, cls):
                mask = a.mask & b.mask
            inner = [each.values if isinstance(each, cls) else each for each in (a, b)]
            return cls(func(*inner), mask)
        if name is aten.sum:
            return cls(args[0].values.masked_fill(~args[0].mask, 0).sum(), torch.tensor(True))
        if name in (aten.neg, aten.exp, aten.detach, aten.clone):
            return cls(func(args[0].values), args[0].mask)
        if name is aten._local_scalar_dense:
            return args[0].values.item()
        raise NotImplementedError(f"Masked: {func}")


def masks():
    m = Masked(torch.tensor([1.0, 2.0, 3.0]), torch.tensor([True, False, True]))
    n = Masked(torch.tensor([1.0, 1.0, 1.0]), torch.tensor([True, True, False]))
    print(m, m + n, m * 2, n - 1, -m)
    print(tuple(m.shape), m.dtype == torch.float32, m.device.type, m.requires_grad, m.sum().item())
    print(m + torch.tensor([1.0, 1.0, 1.0]), type(m.detach()).__name__)
    print(copy.deepcopy(m))
    try:
        m.cos()
    except NotImplementedError as error:
        print(error)


class Doubling(TorchFunctionMode):
    """Ones become twos; everything else is noted."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.names.append(func.__name__)
        result = func(*args, **(kwargs or {}))
        return result * 2 if func is torch.ones else result


def modes():
    with Doubling() as mode:
        x = torch.ones(2)
        y = F.relu(x) + torch.zeros(2)
        z = nn.Linear(2, 1, bias=False)
        shape = y.shape
    print(mode.names[:4], mode.names[-1] == "__get__", x.tolist(), y.tolist(), tuple(shape))
    print("kaiming_uniform_" in mode.names, z.in_features)
    with Doubling() as outer, Doubling() as inner:
        print(torch.ones(1).item(), outer.names, inner.names)
    with Doubling() as mode, torch._C.DisableTorchFunction():
        torch.ones(2)
    print(mode.names, torch.ones(1).item())

    @wrap_torch_function(lambda a, b=1: (a,))
    def scaled(a, b=1):
        return a * b

    class Named:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func.__name__, len(args), kwargs

    print(scaled(2, b=3), scaled(Named(), b=3))
    print(handle_torch_function(scaled, (Named(),), Named(), 4))


class Counter(TorchDispatchMode):
    """Multiplications of matrix products, forwards and backwards."""

    def __init__(self):
        super().__init__()
        self.flops, self.names = 0, []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        self.names.append(func._schema.name)
        aten = torch.ops.aten
        if func.overloadpacket in (aten.mm, aten.addmm):
            a, b = args[-2:]
            self.flops += 2 * a.shape[0] * a.shape[1] * b.shape[1]
        return result


def operations():
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
    x = torch.ones(5, 8)
    with Counter() as counter:
        y = model(x)
        forward = counter.flops
        y.sum().backward()
    print(forward, counter.flops, "aten::addmm" in counter.names, "aten::relu" in counter.names)
    with Counter() as counter:
        z = x + 1
        z.mul_(2)
        z = z.sum(0).sqrt()[1:3].t()
    print(counter.names, z.tolist())
    add = torch.ops.aten.add.Tensor
    print(add, add.overloadpacket, add._schema.name, add.name(), add is torch.ops.aten.add.Tensor)


def copies():
    p = torch.arange(3.0).as_subclass(Plain)
    p.note = "kept"
    for q in (copy.copy(p), pickle.loads(pickle.dumps(p))):
        print(type(q).__name__, q.tolist(), q.note)
    file = io.BytesIO()
    torch.save({"p": p}, file)
    file.seek(0)
    loaded = torch.load(file, weights_only=False)["p"]
    print(type(loaded).__name__, loaded.tolist())

    class Scale(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(2).as_subclass(Plain))

        def forward(self, x):
            return x * self.weight

    module = Scale()
    print(isinstance(module.weight, nn.Parameter), [name for name, _ in module.named_parameters()])
    module(torch.ones(2)).sum().backward()
    print(module.weight.grad.tolist())
    torch.optim.SGD(module.parameters(), lr=0.5).step()
    print(module.weight.tolist())
    print((torch.ones(2).as_subclass(Plain).numpy() + 1).tolist())


if __name__ == "__main__":
    for part in (units, logs, precedence, boxes, masks, modes, operations, copies):
        print(f"-- {part.__name__}")
        part()
