"""The modules in which the names of each torch module are looked up."""

from __future__ import annotations

import importlib
import importlib.util

from plait import _aliases
from plait_abi.imports import import_module
from plait_torch import _backends, _named_only

__all__ = ["FUNCTIONS", "LOOKED_THROUGH", "PLACES", "sources"]

_HERE = "plait_torch."

PLACES: dict[str, tuple[str, ...]] = {
    "torch": (
        _HERE + "_top",
        _HERE + "_functions",
        _HERE + "_matrix_products",
        _HERE + "_native_functions",
        _HERE + "_layer_functions",
        _HERE + "_engine_settings",
        _HERE + "_mapped_file",
        _HERE + "_view_copies",
        _HERE + "_checks",
        _HERE + "_symbols",
        "plait",
        _HERE + "_absent",
    ),
    "torch.__config__": (_HERE + "_config",),
    "torch._C": (_HERE + "_inside", _HERE + "_inside_overrides", _HERE + "_engine"),
    "torch._guards": (_HERE + "_fake_tensors",),
    "torch._ops": (_HERE + "_aten", _HERE + "_library"),
    "torch._C._nn": (_HERE + "_arguments",),
    "torch._C._functorch": (_HERE + "_functorch",),
    **{
        f"torch._functorch{name}": (_HERE + "_functorch",)
        for name in ("", ".apis", ".eager_transforms", ".functional_call", ".vmap")
    },
    "torch._utils_internal": (_HERE + "_paths",),
    "torch._utils": (_HERE + "_tensor_lists",),
    "torch._tensor": (_HERE + "_functions", "plait", _HERE + "_torch_function"),
    "torch.cuda._utils": (_HERE + "_tensor_lists",),
    "torch.utils._contextlib": (_HERE + "_decorators",),
    "torch._custom_ops": (_HERE + "_library",),
    "torch.fx": (_HERE + "_fx",),
    **{
        f"torch.fx.{name}": (_HERE + "_fx", _HERE + "_fx_passes")
        for name in (
            "graph",
            "graph_module",
            "interpreter",
            "node",
            "proxy",
        )
    },
    "torch.fx._symbolic_trace": (_HERE + "_fx", _HERE + "_fx_passes", _HERE + "_fx_patches"),
    "torch.fx._pytree": (_HERE + "_fx_pytree", "plait.func.pytree", _HERE + "_pytree"),
    "torch.fx.experimental.symbolic_shapes": (_HERE + "_symbolic_shapes",),
    "torch.fx.subgraph_rewriter": (_HERE + "_fx_rewriter",),
    "torch.fx._compatibility": (_HERE + "_fx_passes",),
    "torch.fx.immutable_collections": (_HERE + "_fx_passes",),
    "torch.fx.experimental.optimization": (_HERE + "_fx_passes",),
    "torch.fx.passes": (_HERE + "_packages",),
    "torch.fx.passes.infra": (_HERE + "_packages",),
    "torch.fx.passes.infra.pass_base": (_HERE + "_fx_passes",),
    "torch.fx.passes.infra.pass_manager": (_HERE + "_fx_passes",),
    "torch.fx.passes.split_module": (_HERE + "_fx_passes",),
    "torch.fx.passes.shape_prop": (_HERE + "_fx_shapes",),
    "torch.fx.experimental": (_HERE + "_packages",),
    "torch.fx.experimental.proxy_tensor": (_HERE + "_fx",),
    "torch.futures": (_HERE + "_futures",),
    "torch.library": (_HERE + "_library",),
    "torch.ops": (_HERE + "_library:ops",),
    "torch.return_types": (_HERE + "_return_types",),
    "torch._higher_order_ops": (_HERE + "_scan",),
    "torch._higher_order_ops.associative_scan": (_HERE + "_scan",),
    "torch._tensor_str": (_HERE + "_tensor_str",),
    "torch.quantization": (_HERE + "_quantization",),
    "torch.ao": (_HERE + "_packages",),
    "torch.ao.quantization": (_HERE + "_quantization",),
    "torch.ao.nn": (_HERE + "_packages",),
    "torch.ao.nn.quantized": (_HERE + "_quantization",),
    "torch.nn.quantized": (_HERE + "_quantization",),
    "torch.version": (_HERE + "_version",),
    "torch.torch_version": (_HERE + "_version",),
    "torch.types": (_HERE + "_annotations",),
    "torch.masked": (_HERE + "_masked",),
    "torch.quasirandom": (_HERE + "_quasirandom",),
    "torch.random": (_HERE + "_random",),
    "torch.serialization": (_HERE + "_serialization",),
    "torch.functional": (_HERE + "_functions", "plait"),
    "torch.fft": ("plait.fft",),
    "torch.linalg": ("plait.linalg",),
    "torch.special": ("plait.special",),
    "torch.signal": (_HERE + "_packages",),
    "torch.signal.windows": (_HERE + "_windows",),
    "torch.sparse": (_HERE + "_sparse", "plait.sparse"),
    "torch.testing": (_HERE + "_testing", "plait.testing"),
    "torch.testing._comparison": (_HERE + "_comparison",),
    "torch.testing._internal": (_HERE + "_packages",),
    "torch.testing._internal.optests": (_HERE + "_optests",),
    "torch.profiler": (_HERE + "_profiler", "plait.profiler"),
    "torch.profiler.profiler": (_HERE + "_profiler", "plait.profiler"),
    "torch.autograd.profiler_util": (_HERE + "_profiler", "plait.profiler"),
    "torch.autograd.profiler": (_HERE + "_autograd_profiler", "plait.profiler"),
    "torch.func": ("plait.func",),
    "torch.compiler": (_HERE + "_compiler",),
    "torch._dynamo": (_HERE + "_dynamo",),
    "torch._dynamo.eval_frame": (_HERE + "_dynamo",),
    "torch._dynamo.utils": (_HERE + "_dynamo",),
    "torch._dynamo._trace_wrapped_higher_order_op": (_HERE + "_dynamo",),
    "torch._dynamo.exc": (_HERE + "_dynamo_exc",),
    "torch._dynamo.config": (_HERE + "_dynamo:config",),
    "torch._inductor": (_HERE + "_dynamo",),
    "torch._inductor.config": (_HERE + "_dynamo:config",),
    "torch.jit": (_HERE + "_jit",),
    "torch.jit.annotations": (_HERE + "_jit_annotations",),
    "torch._jit_internal": (_HERE + "_jit", _HERE + "_jit_annotations"),
    "torch._lowrank": (_HERE + "_functions",),
    "torch._lobpcg": (_HERE + "_engine_settings",),
    "torch._vmap_internals": ("plait.func",),
    "torch._prims_common": (_HERE + "_prims_common",),
    "torch._VF": (_HERE + "_functions", _HERE + "_layer_functions", "plait"),
    "torch.compiler.config": (_HERE + "_dynamo:config",),
    "torch.hub": (_HERE + "_hub",),
    "torch.onnx": (_HERE + "_onnx",),
    "torch.onnx.symbolic_helper": (_HERE + "_onnx",),
    "torch.onnx.symbolic_opset9": (_HERE + "_packages",),
    "torch.onnx.symbolic_opset11": (_HERE + "_packages",),
    "torch.distributed": (_HERE + "_distributed",),
    "torch.distributed.rpc": (_HERE + "_packages",),
    "torch.distributed.tensor": (_HERE + "_distributed_tensor",),
    "torch.distributed._tensor": (_HERE + "_distributed_tensor",),
    "torch.distributed.optim": (_HERE + "_distributed",),
    "torch.distributed.nn": (_HERE + "_distributed",),
    "torch.distributed.nn.functional": (_HERE + "_distributed",),
    "torch.amp": (_HERE + "_amp",),
    "torch.amp.autocast_mode": (_HERE + "_amp",),
    "torch.amp.grad_scaler": (_HERE + "_amp",),
    "torch.cpu": (_HERE + "_accelerator:cpu",),
    "torch.cpu.amp": (_HERE + "_amp:of_cpu",),
    "torch.cuda": (_HERE + "_cuda", "plait.cuda"),
    "torch.cuda.amp": (_HERE + "_packages", _HERE + "_amp:of_cuda"),
    "torch.cuda.amp.autocast_mode": (_HERE + "_amp:of_cuda", _HERE + "_amp"),
    "torch.cuda.amp.grad_scaler": (_HERE + "_amp:of_cuda", _HERE + "_amp"),
    "torch.cuda.random": (_HERE + "_cuda", "plait.cuda"),
    "torch.cuda.memory": (_HERE + "_cuda", "plait.cuda"),
    "torch.cuda.streams": (_HERE + "_cuda",),
    "torch.cuda.graphs": (_HERE + "_cuda",),
    "torch.mps": (_HERE + "_accelerator:mps",),
    "torch.xpu": (_HERE + "_accelerator:xpu",),
    "torch.mtia": (_HERE + "_accelerator:mtia",),
    "torch.accelerator.memory": (_HERE + "_accelerator", "plait.accelerator"),
    "torch.accelerator": (_HERE + "_accelerator", "plait.accelerator"),
    "torch.backends": (_HERE + "_packages",),
    "torch.overrides": (_HERE + "_overrides",),
    "torch.autograd": (_HERE + "_autograd", "plait.autograd"),
    "torch.autograd.functional": ("plait.autograd.functional",),
    "torch.autograd.forward_ad": ("plait.autograd.forward_ad",),
    "torch.autograd.graph": ("plait.autograd.graph",),
    "torch.nn": (_HERE + "_nn", "plait.nn"),
    "torch.nn.functional": (_HERE + "_nn_functional", "plait.nn.functional"),
    "torch.nn.grad": (_HERE + "_conv_gradients",),
    "torch.nn.init": ("plait.nn.init",),
    "torch.nn.attention.flex_attention": (_HERE + "_flex_attention",),
    "torch.nn.attention": (_HERE + "_attention",),
    "torch.nn.modules": (_HERE + "_nn_modules", _HERE + "_nn", "plait.nn"),
    "torch.nn.modules.utils": (_HERE + "_tuples", _HERE + "_nn_modules"),
    "torch.nn.common_types": (_HERE + "_tuples",),
    "torch.nn.parallel": (_HERE + "_parallel", "plait.nn"),
    "torch.nn.parallel.distributed": (_HERE + "_parallel",),
    "torch.nn.parallel.parallel_apply": (_HERE + "_parallel",),
    "torch.nn.parallel.replicate": (_HERE + "_parallel",),
    "torch.nn.parallel.scatter_gather": (_HERE + "_parallel",),
    "torch.utils.data.distributed": (_HERE + "_distributed_sampler",),
    "torch.nn.parameter": (_HERE + "_nn", "plait.nn"),
    "torch.nn.utils": (_HERE + "_packages", "plait.nn.utils"),
    "torch.nn.utils._named_member_accessor": (_HERE + "_member_swap",),
    "torch.nn.utils.rnn": ("plait.nn.utils.rnn",),
    "torch.nn.utils.parametrize": ("plait.nn.utils.parametrize",),
    "torch.nn.utils.parametrizations": ("plait.nn.utils.parametrizations",),
    "torch.nn.utils.stateless": ("plait.nn.utils.stateless",),
    "torch.nn.utils.prune": ("plait.nn.utils.prune",),
    "torch.optim": (_HERE + "_packages", "plait.optim"),
    "torch.optim.lr_scheduler": (_HERE + "_lr_scheduler", "plait.optim.lr_scheduler"),
    "torch.optim.swa_utils": ("plait_torch._averaged_model", "plait.optim.swa_utils"),
    "torch.utils.cpp_extension": (_HERE + "_cpp_extension",),
    "torch.storage": (_HERE + "_tensor_methods", "plait"),
    "torch.utils": (_HERE + "_tensor_swap",),
    "torch.utils.weak": (_HERE + "_weak",),
    "torch.utils.model_zoo": (_HERE + "_model_zoo",),
    "torch._subclasses": (_HERE + "_fake_tensors",),
    "torch._subclasses.fake_tensor": (_HERE + "_fake_tensors",),
    "torch.utils._pytree": ("plait.func.pytree", _HERE + "_pytree"),
    "torch.utils.flop_counter": (_HERE + "_flop_counter",),
    "torch.utils._foreach_utils": (_HERE + "_foreach_utils",),
    "torch.utils._python_dispatch": (_HERE + "_python_dispatch",),
    "torch.utils.hooks": (_HERE + "_utils_hooks",),
    "torch.utils.checkpoint": (_HERE + "_checkpoint",),
    "torch.utils.data": (
        _HERE + "_distributed_sampler",
        _HERE + "_dataloader",
        "plait.utils.data",
        _HERE + "_datapipes",
    ),
    "torch.utils.data.graph_settings": (_HERE + "_datapipes",),
    "torch.utils.data.datapipes": (_HERE + "_datapipes",),
    "torch.utils.data.datapipes._decorator": (_HERE + "_datapipes",),
    "torch.utils.data.datapipes.datapipe": (_HERE + "_datapipes",),
    "torch.utils.data.datapipes.iter": (_HERE + "_packages", _HERE + "_datapipes:iter"),
    "torch.utils.data.datapipes.iter.combinatorics": (_HERE + "_datapipes:combinatorics",),
    "torch.utils.data.datapipes.map": (_HERE + "_packages", _HERE + "_datapipes:map"),
    "torch.utils.data._utils": (_HERE + "_data_utils", "plait.utils.data"),
    "torch.utils.data._utils.collate": (_HERE + "_collate",),
    "torch.utils.data._utils.fetch": (_HERE + "_dataloader",),
    "torch.utils.data._utils.pin_memory": (_HERE + "_data_utils",),
    "torch.utils.data._utils.worker": (_HERE + "_data_utils",),
    "torch.utils.tensorboard": (_HERE + "_tensorboard",),
    "torch.utils.tensorboard.writer": (_HERE + "_tensorboard",),
    "torch.utils.tensorboard.summary": (_HERE + "_tensorboard",),
    "torch.utils.benchmark": (_HERE + "_benchmark",),
    "torch.utils.dlpack": (_HERE + "_functions", "plait"),
}

# modules of PyTorch that contain a part of the names of their parent package
_PARTS = {
    "nn.modules": (
        "activation", "adaptive", "batchnorm", "container", "conv", "distance", "dropout",
        "flatten", "fold", "instancenorm", "lazy", "linear", "loss", "module",
        "normalization", "padding", "pixelshuffle", "pooling", "rnn", "sparse", "transformer",
        "upsampling", "channelshuffle",
    ),
    "nn.utils": ("clip_grad", "convert_parameters", "fusion", "init", "memory_format",
                 "spectral_norm", "weight_norm"),
    "optim": (
        "optimizer", "adadelta", "adagrad", "adam", "adamax", "adamw", "asgd", "lbfgs", "nadam",
        "radam", "rmsprop", "rprop", "sgd",
    ),
    "utils.data": ("dataset", "dataloader", "sampler"),
    "autograd": ("anomaly_mode", "function", "grad_mode", "gradcheck", "variable"),
}  # fmt: skip

for _package, _names in _PARTS.items():
    for _name in _names:
        PLACES[f"torch.{_package}.{_name}"] = PLACES[f"torch.{_package}"]

PLACES["torch.distributions.transforms"] = (
    "plait.distributions.transforms",
    "plait_nn.distributions._transform",
    _HERE + "_distribution_utils",
)
PLACES["torch.distributions.utils"] = (_HERE + "_distribution_utils", "plait.distributions.utils")
PLACES["torch.autograd.function"] = ("plait.autograd.function", *PLACES["torch.autograd"])
PLACES["torch.optim.optimizer"] = (_HERE + "_optimizer", "plait.optim")

for _name in _backends.__all__:
    PLACES[f"torch.backends.{_name}"] = (f"{_HERE}_backends:{_name}",)

PLACES["torch.distributed.distributed_c10d"] = (_HERE + "_distributed",)
for _name in ("distributed", "distributed.device_mesh", "distributed.tensor.device_mesh",
              "distributed.tensor.placement_types", "distributed._tensor.placement_types",
              "distributed.tensor._dtensor_spec"):  # fmt: skip
    _before = PLACES.get(f"torch.{_name}", ())
    PLACES[f"torch.{_name}"] = (*_before, _HERE + "_distributed_tensor")
PLACES["torch.distributed.algorithms._checkpoint"] = (_HERE + "_packages",)
PLACES["torch.distributed.algorithms._checkpoint.checkpoint_wrapper"] = (
    _HERE + "_checkpoint_wrapper",
)
for _name in _named_only.places():
    _place = f"torch.{_name}".rstrip(".")
    _before = PLACES.get(_place, (_HERE + "_packages",))
    PLACES[_place] = (*_before, f"{_HERE}_named_only:{_name or 'torch'}")

# names that are functions of the parent package, also after an import of the module
FUNCTIONS = frozenset({"torch._higher_order_ops.associative_scan",
                       "torch.distributed._composable.replicate",
                       "torch.autograd.gradcheck", "torch.nn.utils.weight_norm",
                       "torch.nn.utils.spectral_norm", "torch.nn.parallel.parallel_apply",
                       "torch.nn.parallel.replicate"})  # fmt: skip

# modules in whose `__dict__` libraries search for classes
LOOKED_THROUGH = frozenset(
    {"torch.nn.modules.activation", "torch.optim", "torch.optim.lr_scheduler"}
)

# with the optional package of plait for several processes
_RUN = (_HERE + "_distributed_run",)
_OF_SEVERAL_PROCESSES: dict[str, tuple[str, ...]] = {
    "torch.distributed": (
        "plait.distributed",
        "plait.distributed.device_mesh",
        _HERE + "_distributed",
        _HERE + "_distributed_groups",
    ),
    "torch.distributed.distributed_c10d": (_HERE + "_distributed_groups", "plait.distributed"),
    "torch.distributed.nn": ("plait.distributed.nn",),
    "torch.distributed.nn.functional": ("plait.distributed.nn.functional",),
    "torch.distributed.algorithms": (_HERE + "_packages",),
    "torch.distributed.algorithms.ddp_comm_hooks": (_HERE + "_packages",),
    "torch.distributed.algorithms.ddp_comm_hooks.default_hooks": (
        "plait.distributed.algorithms.ddp_comm_hooks.default_hooks",
    ),
    "torch.distributed.algorithms.join": ("plait.distributed.algorithms.join",),
    "torch.distributed.optim": ("plait.distributed.optim",),
    "torch.distributed.elastic": (_HERE + "_packages",),
    "torch.distributed.elastic.multiprocessing": (_HERE + "_distributed_errors",),
    "torch.distributed.elastic.multiprocessing.errors": (_HERE + "_distributed_errors",),
    "torch.distributed.run": _RUN,
    "torch.distributed.launch": _RUN,
    "torch.nn": (_HERE + "_sync_batch_norm", *PLACES["torch.nn"]),
    "torch.nn.modules": (_HERE + "_sync_batch_norm", *PLACES["torch.nn.modules"]),
    "torch.nn.modules.batchnorm": (_HERE + "_sync_batch_norm", *PLACES["torch.nn.modules"]),
    "torch.nn.parallel": (_HERE + "_data_parallel", *PLACES["torch.nn.parallel"]),
    "torch.nn.parallel.distributed": (
        _HERE + "_data_parallel",
        *PLACES["torch.nn.parallel.distributed"],
    ),
}

# with the optional package of plait for clusters
_ON_RAY: dict[str, tuple[str, ...]] = {
    "torch.distributed.rpc": ("plait.ray.rpc",),
    "torch.distributed.rpc.functions": ("plait.ray.functions",),
    "torch.distributed.rpc.options": ("plait.ray.rpc",),
    "torch.distributed.autograd": ("plait.ray.autograd",),
    "torch.distributed.optim": ("plait.ray.optim",),
}
# by the module of plait that has them, the modules of PyTorch below torch.distributed
_OF_SHARDED_TRAINING = {
    "device_mesh": "device_mesh tensor.device_mesh _tensor.device_mesh",
    "tensor": "tensor _tensor tensor.placement_types _tensor.placement_types",
    "tensor.parallel": "tensor.parallel tensor.parallel.style tensor.parallel.api",
    "fsdp": """
        fsdp fsdp.api fsdp.fully_sharded_data_parallel fsdp._fully_shard _composable
        _composable.fsdp
    """,
    "fsdp.wrap": "fsdp.wrap",
    "pipelining": "pipelining pipelining.schedules pipelining.stage",
    "checkpoint": """
        checkpoint checkpoint.api checkpoint.default_planner checkpoint.filesystem
        checkpoint.state_dict checkpoint.state_dict_loader checkpoint.state_dict_saver
    """,
    "checkpoint.stateful": "checkpoint.stateful",
    "algorithms.ddp_comm_hooks.debugging_hooks": "algorithms.ddp_comm_hooks.debugging_hooks",
    "algorithms.ddp_comm_hooks.post_localSGD_hook": "algorithms.ddp_comm_hooks.post_localSGD_hook",
    "algorithms.ddp_comm_hooks.powerSGD_hook": "algorithms.ddp_comm_hooks.powerSGD_hook",
    "algorithms.model_averaging.averagers": "algorithms.model_averaging.averagers",
}
for _real, _places in _OF_SHARDED_TRAINING.items():
    for _name in _places.split():
        _OF_SEVERAL_PROCESSES[f"torch.distributed.{_name}"] = (f"plait.distributed.{_real}",)

# optional packages of plait
_OPTIONAL = {"torch.distributions": "plait.distributions",
             "torch.multiprocessing": "plait.multiprocessing"}  # fmt: skip
_BESIDE = {"torch.multiprocessing": (_HERE + "_multiprocessing",)}


def sources(fullname: str) -> tuple[str, ...] | None:
    """Return where the names of a torch module are looked up; None: there is no such module."""
    found: list[str] = []
    for places, package in ((_OF_SEVERAL_PROCESSES, "plait.distributed"), (_ON_RAY, "plait.ray")):
        if fullname in places and _is_there(package):
            found += places[fullname]
    if found:  # before what exists by name only
        return tuple(dict.fromkeys([*found, *PLACES.get(fullname, ())]))
    if fullname in PLACES:
        return PLACES[fullname]
    for name, real in _OPTIONAL.items():
        if fullname == name and _is_there(real):
            return (*_BESIDE.get(name, ()), real)
        inner = fullname.removeprefix(name + ".")
        # torch.distributions.normal: its own module, or a view of the package
        if inner != fullname and _is_there(real):
            if "." not in inner and _holds(real, inner):
                # with what PyTorch's module imports: libraries take classes from there
                return (f"{real}.{inner}", real) if inner in _IMPORTING else (f"{real}.{inner}",)
            if name == "torch.distributions" and inner in _DISTRIBUTIONS:
                return (real, real)
    return None


def _holds(real: str, inner: str) -> bool:
    """Return whether a package of plait has a module."""
    package = import_module(real).__name__
    return importlib.util.find_spec(f"{package}.{inner}") is not None


def _is_there(real: str) -> bool:
    """Return whether a package of plait is installed."""
    name = real.removeprefix("plait.")
    if _aliases.is_alias(name):
        return _aliases.is_installed(name)
    return importlib.util.find_spec(real) is not None


_IMPORTING = ("multivariate_normal", "normal")
_DISTRIBUTIONS = (
    "bernoulli", "beta", "binomial", "categorical", "cauchy", "constraints", "dirichlet",
    "distribution", "exp_family", "exponential", "gamma", "geometric", "gumbel", "half_normal",
    "independent", "kl", "laplace", "lkj_cholesky",
    "log_normal", "mixture_same_family", "multinomial",
    "multivariate_normal", "normal", "one_hot_categorical", "poisson", "relaxed_bernoulli",
    "relaxed_categorical", "studentT", "transformed_distribution", "transforms", "uniform",
    "wishart",
)  # fmt: skip
