"""Steps of a gradient scaler that subclasses override, and optimizers that scale by themselves."""

import copy
import pickle

import torch
from torch.amp import GradScaler

called = set()
NAMES = [
    "_check_inf_per_device", "_check_scale_growth_tracker", "_lazy_init_scale_growth_tracker",
    "_maybe_opt_step", "_unscale_grads_", "scale", "step", "unscale_", "update", "get_scale",
    "_get_growth_tracker", "_get_scale_async",
]  # fmt: skip


class Noted(GradScaler):
    pass


def noted(name, plain):
    def member(self, *args, **kwargs):
        called.add(name)
        return plain(self, *args, **kwargs)

    return member


for name in NAMES:
    setattr(Noted, name, noted(name, getattr(GradScaler, name)))


def show(*values):
    print(*values, sorted(called))
    called.clear()


def step(scaler, optimizer, factor=1.0, unscale=True):
    optimizer.zero_grad()
    scaler.scale((parameter * factor).sum()).backward()
    if unscale:
        scaler.unscale_(optimizer)
    result = scaler.step(optimizer)
    scaler.update()
    return result


def refused(call):
    try:
        call()
    except (RuntimeError, AssertionError, ValueError):
        return True
    return False


parameter = torch.nn.Parameter(torch.ones(3))
plain = torch.optim.SGD([parameter], lr=0.1)
scaler = Noted("cpu", init_scale=8.0, growth_interval=2)
for factor in (1.0, float("inf"), 1.0, 1.0, 1.0):
    step(scaler, plain, factor)
    show(parameter.tolist(), scaler.state_dict())
step(scaler, plain, unscale=False)
show(scaler.get_scale(), scaler._get_growth_tracker())


class Scaling(torch.optim.SGD):
    _step_supports_amp_scaling = True

    def step(self, closure=None):
        scale = self.grad_scale
        return None if scale is None else float(scale), float(self.found_inf)


class Asking(torch.optim.SGD):
    _step_supports_amp_scaling = True

    def step(self, closure=None, grad_scaler=None):
        result = grad_scaler._check_inf_per_device(self)
        return grad_scaler is scaler, [float(each) for each in result.values()]


for kind in (Scaling, Asking):
    show(kind.__name__, step(scaler, kind([parameter], lr=0.1), unscale=False))
show(step(scaler, Scaling([parameter], lr=0.1)))
print(hasattr(Scaling([parameter], lr=0.1), "grad_scale"))

early = GradScaler("cpu")
print([refused(call) for call in (
    early.update, lambda: early.step(plain), lambda: early.unscale_(plain)
)])  # fmt: skip
print(early.get_growth_factor(), early.get_backoff_factor(), early.get_growth_interval())
early.set_growth_factor(3.0), early.set_backoff_factor(0.25), early.set_growth_interval(7)
print(early.state_dict(), early._get_scale_async())
early.load_state_dict(scaler.state_dict())
print(pickle.loads(pickle.dumps(early)).state_dict(), copy.deepcopy(early).get_scale())

largest = GradScaler("cpu", init_scale=2.0**126, growth_interval=1)
for _ in range(3):
    step(largest, plain, 0.0)
tiny = iter([torch.ones(1) / 2.0**126])
print(largest.get_scale() == 2.0**127, [each.item() for each in largest.scale(tiny)])
print(refused(lambda: largest.scale(3.0)))
