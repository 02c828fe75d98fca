"""What libraries replace in PyTorch's modules and classes for a while, and its effect."""

import warnings
from collections import OrderedDict
from unittest import mock

import torch
from torch import nn
from torch.optim import lr_scheduler
from torch.utils.data import DataLoader, DistributedSampler, IterableDataset
from torch.utils.data.dataloader import _BaseDataLoaderIter, _SingleProcessDataLoaderIter

warnings.simplefilter("ignore")


def made_layers():
    return [
        nn.Linear(2, 3), nn.BatchNorm2d(3), nn.LSTM(2, 2), nn.Conv2d(1, 1, 1), nn.LayerNorm(2),
        nn.Embedding(3, 2), nn.MultiheadAttention(4, 2), nn.Bilinear(2, 2, 2), nn.GroupNorm(1, 2),
    ]  # fmt: skip


def show(label, layers):
    for layer in layers:
        state = layer.state_dict().values()
        results = sorted({(str(each.dtype), each.device.type) for each in state})
        print(label, type(layer).__name__, results)


# ---- functions that were not used before, for the time of a context


def refuse(*args, **kwargs):
    raise LookupError


for module, name, layer in (
    (torch, "ones", lambda: nn.BatchNorm1d(2)), (torch, "empty", lambda: nn.Linear(2, 2)),
    (nn.functional, "relu", lambda: nn.ReLU()(torch.tensor([1.0]))),
    (nn.functional, "layer_norm", lambda: nn.LayerNorm(2)(torch.tensor([1.0, 2.0]))),
):  # fmt: skip
    called = False
    with mock.patch.object(module, name, refuse):
        try:
            layer()
        except LookupError:
            called = True
    layer()
    print(name, called, getattr(module, name) is refuse)

# ---- functions that make tensors, as for parameters of another dtype or without memory


def in_half(function):
    def make(*args, **kwargs):
        tensor = function(*args, **kwargs)
        return tensor.to(torch.float16) if tensor.is_floating_point() else tensor

    return make


def on_meta(function):
    return lambda *args, **kwargs: function(*args, **{**kwargs, "device": "meta"})


originals = {name: getattr(torch, name) for name in ("empty", "zeros", "ones", "full", "tensor")}
for way in (in_half, on_meta):
    for name, function in originals.items():
        setattr(torch, name, way(function))
    layers = made_layers()
    for name, function in originals.items():
        setattr(torch, name, function)
    show(way.__name__, layers)
show("restored", made_layers()[:2])

# ---- registration of parameters and buffers, and the definition of classes

register_parameter, register_buffer = nn.Module.register_parameter, nn.Module.register_buffer


def register_empty_parameter(module, name, parameter):
    register_parameter(module, name, parameter)
    if parameter is not None:
        module._parameters[name] = nn.Parameter(module._parameters[name].to("meta"))


def register_empty_buffer(module, name, buffer, persistent=True):
    register_buffer(module, name, buffer, persistent=persistent)
    if buffer is not None:
        module._buffers[name] = module._buffers[name].to("meta")


nn.Module.register_parameter = register_empty_parameter
nn.Module.register_buffer = register_empty_buffer
layers = made_layers()
nn.Module.register_parameter, nn.Module.register_buffer = register_parameter, register_buffer
show("registered", layers)

log = []
init_subclass = nn.Module.__init_subclass__


def noted(cls, **kwargs):
    plain = cls.__init__

    def init(self, *args, **kwargs):
        plain(self, *args, **kwargs)
        log.append(f"{cls.__name__} made")

    cls.__init__ = init


nn.Module.__init_subclass__ = classmethod(noted)


class Own(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 2)
        self.register_buffer("one", torch.ones(1))

    def forward(self, x):
        return self.layer(x) + self.one


class Called(Own):
    def __call__(self, x):
        log.append("called")
        return super().__call__(x)


nn.Module.__init_subclass__ = init_subclass
for kind in (Own, Called):
    log.clear()
    module = kind()
    module.register_forward_hook(lambda *args: log.append("hook"))
    module(torch.ones(1, 2)).sum().backward()
    print(len(module.state_dict()), module.one.tolist(), module.layer.bias.grad.tolist(), log)

# ---- iterators of loaders: an interrupted epoch goes on after some batches


class Stream(IterableDataset):
    def __iter__(self):
        return iter(range(5))


init, reset = _BaseDataLoaderIter.__init__, _BaseDataLoaderIter._reset
next_data = _SingleProcessDataLoaderIter._next_data


def init_later(self, loader, *args, **kwargs):
    init(self, loader, *args, **kwargs)
    for i in range(getattr(loader, "begin", 0)):
        next(self._sampler_iter)
        self._num_yielded = i + 1


def noted_reset(self, loader, first_iter=False, *args, **kwargs):
    log.append("reset")
    reset(self, loader, first_iter)


def noted_data(self):
    log.append("data")
    return next_data(self)


def batches(loader):
    log.clear()
    return [batch.tolist() for batch in loader], log


_BaseDataLoaderIter.__init__, _BaseDataLoaderIter._reset = init_later, noted_reset
_SingleProcessDataLoaderIter._next_data = noted_data
loader = DataLoader(torch.arange(8), 2)
print(batches(loader), batches(DataLoader(Stream(), 2)))
loader.begin = 2
iterator = iter(loader)
print(batches(iterator), iterator._num_yielded)
_BaseDataLoaderIter.__init__, _BaseDataLoaderIter._reset = init, reset
_SingleProcessDataLoaderIter._next_data = next_data
print(batches(loader))

# ---- attributes that subclasses set


class Few(DistributedSampler):
    def __init__(self, dataset):
        super().__init__(dataset, num_replicas=2, rank=1)
        self.num_samples = 2
        self.total_size = 4

    def __iter__(self):
        return iter(range(self.rank, self.total_size, self.num_replicas))


class Bare(DistributedSampler):
    def __init__(self, dataset):
        self.dataset, self.num_replicas, self.rank, self.epoch = dataset, 2, 0, 0
        self.shuffle, self.drop_last, self.num_samples, self.total_size = False, False, 3, 6


for sampler in (Few(range(9)), Bare(range(5))):
    print(len(sampler), list(sampler), sampler.num_samples)
sampler.num_samples = 2
try:
    print(list(sampler))
except (AssertionError, ValueError):
    print("refused")

parameter = nn.Parameter(torch.ones(2))
parameter.grad = torch.ones(2)


class Wrapper(torch.optim.Optimizer):
    """An optimizer around another one, as timm's Lookahead is."""

    def __init__(self, inner):
        self.inner, self.defaults, self.state = inner, inner.defaults, inner.state
        self.param_groups = inner.param_groups
        for when in ("step", "state_dict", "load_state_dict"):
            setattr(self, f"_optimizer_{when}_pre_hooks", OrderedDict())
            setattr(self, f"_optimizer_{when}_post_hooks", OrderedDict())

    def step(self, closure=None):
        self._cuda_graph_capture_health_check()
        return self.inner.step(closure)

    def update(self, value):
        return value

    def grad_norm(self):
        return 3


class Plain(Wrapper):
    def __init__(self, inner):
        torch.optim.Optimizer.__init__(self, inner.param_groups, {})
        hooks, self.inner = self._optimizer_step_post_hooks, inner
        assert hooks == {}


for kind in (Plain, Wrapper):
    log.clear()
    wrapper = kind(torch.optim.SGD([parameter], lr=0.5, momentum=0.5))
    for when in ("state_dict_pre", "state_dict_post", "load_state_dict_pre"):
        register = getattr(wrapper, f"register_{when}_hook")
        register(lambda *args, when=when: log.append(when))
        register(lambda *args, when=when: log.append("first " + when), prepend=True)
    wrapper.register_step_post_hook(lambda *args: log.append("step")).remove()
    if kind is Plain:
        wrapper.register_step_post_hook(lambda *args: log.append("second"))
    wrapper.step()
    wrapper.load_state_dict(wrapper.state_dict())
    print(kind.__name__, parameter.tolist(), wrapper.update(1), wrapper.grad_norm(), log)


class Asking(lr_scheduler.LRScheduler):
    """A schedule that warns of calls outside of steps, as NeMo's do."""

    def get_lr(self):
        log.append(self._get_lr_called_within_step)
        return [group["lr"] / 2 for group in self.optimizer.param_groups]


class Warm(lr_scheduler.CosineAnnealingWarmRestarts):
    def get_lr(self):
        log.append(self._get_lr_called_within_step)
        return super().get_lr()


for kind, options in ((Asking, ()), (Warm, (3,))):
    log.clear()
    schedule = kind(torch.optim.SGD([parameter], lr=0.5), *options)
    schedule.optimizer.step()
    schedule.step()
    schedule.get_lr()
    print(kind.__name__, schedule.get_last_lr(), log, sorted(schedule.state_dict()))


class Plateau(lr_scheduler.ReduceLROnPlateau):
    def _init_is_better(self, mode, threshold, threshold_mode):
        log.append((mode, threshold_mode))
        super()._init_is_better(mode, threshold, threshold_mode)


log.clear()
schedule = Plateau(torch.optim.SGD([parameter], lr=0.5), mode="max")
schedule.load_state_dict({**schedule.state_dict(), "mode": "min"})
schedule._init_is_better("min", 0.1, "abs")
print(schedule.mode_worse, schedule.threshold, log)
