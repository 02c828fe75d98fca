"""Members of modules, optimizers and schedules that are overridden or replaced: their calls."""

import copy
import inspect
import io
import pickle
import sys
import warnings
from functools import partial

import torch
from torch import nn
from torch.optim import lr_scheduler

warnings.simplefilter("ignore")
torch.manual_seed(0)
NAMES = {
    "nn.Module": (
        "__call__ __delattr__ __dir__ __eq__ __getstate__ __hash__ __repr__ __setattr__ "
        "__setstate__ _apply _call_impl "
        "_get_backward_hooks _get_backward_pre_hooks _get_name _load_from_state_dict "
        "_maybe_warn_non_full_backward_hook _named_members "
        "_register_load_state_dict_pre_hook _register_state_dict_hook "
        "_replicate_for_data_parallel _save_to_state_dict _slow_forward "
        "_wrapped_call_impl add_module apply bfloat16 buffers children compile cpu cuda "
        "double eval extra_repr float forward get_buffer get_extra_state get_parameter "
        "get_submodule half ipu load_state_dict modules mtia named_buffers named_children "
        "named_modules named_parameters parameters register_backward_hook register_buffer "
        "register_forward_hook register_forward_pre_hook register_full_backward_hook "
        "register_full_backward_pre_hook register_load_state_dict_post_hook "
        "register_load_state_dict_pre_hook register_module register_parameter "
        "register_state_dict_post_hook register_state_dict_pre_hook requires_grad_ "
        "set_extra_state set_submodule share_memory state_dict to to_empty train type xpu "
        "zero_grad "
    ),
    "optim.Optimizer": (
        "OptimizerPostHook OptimizerPreHook __getstate__ __repr__ __setstate__ "
        "_accelerator_graph_capture_health_check _cuda_graph_capture_health_check "
        "_group_tensors_by_device_and_dtype _process_value_according_to_param_policy "
        "add_param_group load_state_dict register_load_state_dict_post_hook "
        "register_load_state_dict_pre_hook register_state_dict_post_hook "
        "register_state_dict_pre_hook register_step_post_hook register_step_pre_hook "
        "state_dict step zero_grad "
    ),
    "optim.SGD": (
        "OptimizerPostHook OptimizerPreHook __getstate__ __repr__ __setstate__ "
        "_group_tensors_by_device_and_dtype _process_value_according_to_param_policy "
        "add_param_group load_state_dict register_load_state_dict_post_hook "
        "register_load_state_dict_pre_hook register_state_dict_post_hook "
        "register_state_dict_pre_hook register_step_post_hook register_step_pre_hook "
        "state_dict step zero_grad "
    ),
    "optim.Adam": (
        "OptimizerPostHook OptimizerPreHook __getstate__ __repr__ __setstate__ "
        "_group_tensors_by_device_and_dtype _process_value_according_to_param_policy "
        "add_param_group load_state_dict register_load_state_dict_post_hook "
        "register_load_state_dict_pre_hook register_state_dict_post_hook "
        "register_state_dict_pre_hook register_step_post_hook register_step_pre_hook "
        "state_dict step zero_grad "
    ),
    "optim.LRScheduler": (
        "__getstate__ __repr__ _initial_step _update_lr get_last_lr get_lr "
        "load_state_dict state_dict step "
    ),
    "optim.StepLR": (
        "__getstate__ __repr__ _get_closed_form_lr _initial_step _update_lr get_last_lr "
        "get_lr load_state_dict state_dict step "
    ),
    "optim.ReduceLROnPlateau": (
        "__getstate__ __repr__ _initial_step _is_better _reduce_lr _reset _update_lr "
        "get_last_lr get_lr load_state_dict state_dict step "
    ),
    "nn.Linear": ("reset_parameters "),
    "nn.Conv2d": ("_conv_forward reset_parameters "),
    "nn.BatchNorm2d": ("_check_input_dim reset_parameters reset_running_stats "),
    "nn.Sequential": (
        "__add__ __delitem__ __getitem__ __iadd__ __imul__ __len__ __mul__ __rmul__ "
        "__setitem__ _get_item_by_idx append extend insert pop "
    ),
    "nn.ModuleDict": (
        "__contains__ __delitem__ __getitem__ __iter__ __len__ __setitem__ clear items keys pop "
        "update values "
    ),
    "nn.MultiheadAttention": ("_reset_parameters merge_masks "),
    "nn.Embedding": ("_fill_padding_idx_with_zero from_pretrained reset_parameters "),
    "nn.TransformerEncoderLayer": ("_ff_block _sa_block "),
}

seen = []


def subclass(base, name):
    """Return a subclass that notes the calls of a member, and passes them on."""
    plain = getattr(base, name, None)
    if isinstance(inspect.getattr_static(base, name, None), staticmethod):

        def function(*args, **kwargs):
            seen.append(name)
            return plain(*args, **kwargs)

        member = staticmethod(function)
    else:

        def member(self, *args, **kwargs):
            seen.append(name)
            return plain(self, *args, **kwargs)

    kind = type("Own", (base,), {name: member, "__module__": __name__})
    sys.modules[__name__].Own = kind  # for pickles
    return kind


def own_module():
    class Own(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(3, 2)

        def forward(self, x):
            return self.layer(x)

    return Own


class OwnOptimizer(torch.optim.Optimizer):
    def __init__(self, params):
        super().__init__(params, {"lr": 1.0})

    def step(self, closure=None):
        return closure() if closure else None


class OwnSchedule(lr_scheduler.LRScheduler):
    def get_lr(self):
        return [group["lr"] * 0.5 for group in self.optimizer.param_groups]


def dict_steps(m):
    return [
        lambda: list(m), lambda: len(m), lambda: m["a"], lambda: "a" in m, m.items, m.keys,
        m.values, lambda: m.update({"c": nn.ReLU()}), lambda: m.pop("a"),
        lambda: m.__setitem__("b", nn.ReLU()), lambda: m.__delitem__("b"), m.clear,
    ]  # fmt: skip


def module_steps(m, inputs):
    outer = nn.Sequential(m)
    return [
        lambda: m(*inputs), m.train, m.eval, m.zero_grad, m.requires_grad_, m.state_dict,
        lambda: m.load_state_dict(m.state_dict()), lambda: list(m.parameters()),
        lambda: list(m.named_buffers()), lambda: list(m.buffers()),
        lambda: list(m.named_modules()), lambda: list(m.modules()), lambda: list(m.children()),
        lambda: m.to(torch.float32), m.float, m.double, m.float, lambda: m.to("cpu"), m.cpu,
        lambda: m.apply(id), lambda: repr(m), lambda: copy.deepcopy(m), lambda: copy.copy(m),
        lambda: pickle.loads(pickle.dumps(m)), lambda: m.register_forward_hook(id).remove(),
        lambda: m.add_module("extra", nn.ReLU()), lambda: setattr(m, "more", nn.ReLU()),
        lambda: setattr(m, "p", nn.Parameter(torch.ones(1))),
        lambda: m.register_buffer("b", torch.ones(1)), lambda: m.get_submodule("extra"),
        lambda: m.get_parameter("p"), outer.state_dict,
        lambda: outer.load_state_dict(outer.state_dict()), outer.train, outer.double, outer.float,
        outer.zero_grad, lambda: list(outer.parameters()), lambda: outer.apply(id),
        lambda: repr(outer), lambda: torch.save(m.state_dict(), io.BytesIO()),
        lambda: delattr(m, "more"), lambda: dir(m), lambda: {m: 1}, lambda: m == outer,
    ] + (dict_steps(m) if isinstance(m, nn.ModuleDict) else [])  # fmt: skip


def optimizer_steps(o):
    return [
        o.step, lambda: o.step(lambda: torch.tensor(1.0)), o.zero_grad, o.state_dict,
        lambda: o.load_state_dict(o.state_dict()),
        lambda: o.add_param_group({"params": [nn.Parameter(torch.ones(1))]}),
        lambda: repr(o), lambda: copy.deepcopy(o), lambda: pickle.loads(pickle.dumps(o)),
        lambda: o.register_step_pre_hook(id).remove(),
        lambda: o.register_step_post_hook(id).remove(),
        lambda: o.register_state_dict_pre_hook(id).remove(),
        lambda: o.register_load_state_dict_post_hook(id).remove(),
        lambda: o.zero_grad(False), lambda: lr_scheduler.StepLR(o, 1).step(),
    ]  # fmt: skip


def schedule_steps(s, o, plateau):
    metric = (1.0,) if plateau else ()
    more = (lambda: [s.step(9.0) for _ in range(15)]) if plateau else (lambda: s.step(3))
    return [
        lambda: s.step(*metric), lambda: s.step(*metric), s.get_last_lr, s.state_dict,
        lambda: s.load_state_dict(s.state_dict()), lambda: copy.deepcopy(s), more,
    ]  # fmt: skip


x = torch.rand(2, 3)
LAYERS = {
    "Linear": ((3, 2), (x,)), "Conv2d": ((1, 1, 1), (torch.rand(1, 1, 2, 2),)),
    "BatchNorm2d": ((1,), (torch.rand(2, 1, 2, 2),)),
    "Sequential": ((nn.Linear(3, 2), nn.ReLU()), (x,)),
    "MultiheadAttention": ((4, 2), (torch.rand(2, 1, 4),) * 3),
    "Embedding": ((3, 2, 1), (torch.tensor([1]),)), "Dropout": ((), (x,)),
    "TransformerEncoderLayer": ((4, 2, 4), (torch.rand(2, 1, 4),)),
    "ModuleDict": (({"a": nn.ReLU(), "b": nn.Linear(1, 1)},), (x,)),
    "CrossEntropyLoss": ((), (x, torch.tensor([0, 1]))),
}  # fmt: skip


def steps(package, kind, make):
    """Return an instance of a class of the library or of a subclass, and a list of its uses."""
    if package == "nn":
        base = own_module() if kind == "Module" else getattr(nn, kind)
        arguments, inputs = ((), (x,)) if kind == "Module" else LAYERS[kind]
        module = make(base)(*arguments)
        return module, lambda: module_steps(module, inputs)
    parameters = [nn.Parameter(torch.ones(2))]
    parameters[0].grad = torch.ones(2)
    if hasattr(torch.optim, kind):
        base = OwnOptimizer if kind == "Optimizer" else getattr(torch.optim, kind)
        optimizer = make(base)(parameters)
        return optimizer, lambda: optimizer_steps(optimizer)
    optimizer = torch.optim.SGD(parameters, lr=1.0)
    optimizer.step()
    seen.clear()
    base = OwnSchedule if kind == "LRScheduler" else getattr(lr_scheduler, kind)
    schedule = make(base)(optimizer, *((1,) if kind == "StepLR" else ()))
    return schedule, lambda: schedule_steps(schedule, optimizer, kind == "ReduceLROnPlateau")


def replace(owner, name):
    """Put a member that notes its calls into a class or an instance; return what undoes it."""
    plain, static = getattr(owner, name, None), inspect.getattr_static(owner, name, None)
    own = name in vars(owner)

    def member(*args, **kwargs):
        seen.append(name)
        return plain(*args, **kwargs)

    setattr(owner, name, staticmethod(member) if isinstance(static, staticmethod) else member)
    return lambda: setattr(owner, name, static) if own else delattr(owner, name)


def own(base):
    sys.modules[__name__].Own = base  # for pickles
    return base


def calls_of(package, kind, name, way):
    """Return what uses of an instance call a member that was replaced in one of three ways."""
    seen.clear()
    undo = None
    if way == "class":
        parts = [getattr(part, kind, None) for part in (nn, torch.optim, lr_scheduler)]
        undo = replace(next(filter(None, parts)), name)
    instance, uses = steps(package, kind, partial(subclass, name=name) if not way else own)
    called = ["made"] if seen else []
    if way == "instance":
        replace(instance, name)
    for i, call in enumerate(uses()):
        seen.clear()
        try:
            call()
        except (RuntimeError, TypeError, LookupError, pickle.PicklingError, AttributeError):
            called.append("refused")
        if seen:
            called.append(str(i))
    if undo:
        undo()
    return called


# on instances: names of types, a step that PyTorch's schedules refuse, and one that the call of a
# module does not look up
DIFFERENT = {
    "OptimizerPostHook", "OptimizerPreHook", "_process_value_according_to_param_policy", "step",
    "_call_impl",
}  # fmt: skip
for way in ("", "class", "instance"):
    for key, names in NAMES.items():
        for name in names.split():
            if way != "instance" or name not in DIFFERENT:
                print(way, key, name, *calls_of(*key.split("."), name, way))
