# Written by tools/alias_modules.py.
from plait import abi as abi
from plait import accelerator as accelerator
from plait import array_api as array_api
from plait import autograd as autograd
from plait import conformance as conformance
from plait import core as core
from plait import cuda as cuda
from plait import distributed as distributed
from plait import distributions as distributions
from plait import func as func
from plait import graph as graph
from plait import mpi as mpi
from plait import multiprocessing as multiprocessing
from plait import nn as nn
from plait import onnx as onnx
from plait import ops as ops
from plait import optim as optim
from plait import profiler as profiler
from plait import ray as ray
from plait import testing as testing
from plait import torch as torch
from plait import ucx as ucx
from plait import utils as utils
from plait import version as version
from plait.core import *
from plait_abi import paths as paths
from plait_abi import report as report
from plait_abi import use as use
from plait_autograd import enable_grad as enable_grad
from plait_autograd import inference_mode as inference_mode
from plait_autograd import is_anomaly_check_nan_enabled as is_anomaly_check_nan_enabled
from plait_autograd import is_anomaly_enabled as is_anomaly_enabled
from plait_autograd import is_grad_enabled as is_grad_enabled
from plait_autograd import is_inference_mode_enabled as is_inference_mode_enabled
from plait_autograd import no_grad as no_grad
from plait_autograd import set_grad_enabled as set_grad_enabled
from plait_core import default_generator as default_generator
from plait_func import vmap as vmap
from plait_graph import compile as compile
from plait_graph import export as export

__version__: str
