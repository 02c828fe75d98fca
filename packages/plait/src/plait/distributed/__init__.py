# Written by tools/alias_modules.py for type checkers; at run time the name is the original module.
from plait.distributed import algorithms as algorithms
from plait.distributed import checkpoint as checkpoint
from plait.distributed import device_mesh as device_mesh
from plait.distributed import elastic as elastic
from plait.distributed import fsdp as fsdp
from plait.distributed import nn as nn
from plait.distributed import optim as optim
from plait.distributed import parallel as parallel
from plait.distributed import pipelining as pipelining
from plait.distributed import run as run
from plait.distributed import tensor as tensor
from plait_distributed import *
