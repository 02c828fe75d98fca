# Written by tools/alias_modules.py.
from plait import (
    abi as abi,
    accelerator as accelerator,
    array_api as array_api,
    autograd as autograd,
    conformance as conformance,
    core as core,
    cuda as cuda,
    distributed as distributed,
    distributions as distributions,
    func as func,
    multiprocessing as multiprocessing,
    nn as nn,
    ops as ops,
    optim as optim,
    profiler as profiler,
    ray as ray,
    testing as testing,
    torch as torch,
    utils as utils,
)
from plait.core import *
from plait_abi import paths as paths, report as report, use as use
from plait_autograd import (
    enable_grad as enable_grad,
    inference_mode as inference_mode,
    is_anomaly_check_nan_enabled as is_anomaly_check_nan_enabled,
    is_anomaly_enabled as is_anomaly_enabled,
    is_grad_enabled as is_grad_enabled,
    no_grad as no_grad,
    set_grad_enabled as set_grad_enabled,
)
from plait_core import default_generator as default_generator
from plait_func import vmap as vmap

__version__: str
