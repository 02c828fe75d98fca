# Written by tools/alias_modules.py for tools; programs get the other module itself.
from plait.distributed import (
    algorithms as algorithms,
    checkpoint as checkpoint,
    device_mesh as device_mesh,
    elastic as elastic,
    fsdp as fsdp,
    nn as nn,
    optim as optim,
    parallel as parallel,
    pipelining as pipelining,
    run as run,
    tensor as tensor,
)
from plait_distributed import *
