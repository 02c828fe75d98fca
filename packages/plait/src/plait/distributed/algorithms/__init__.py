# Written by tools/alias_modules.py for tools; programs get the other module itself.
from plait.distributed.algorithms import (
    ddp_comm_hooks as ddp_comm_hooks,
    join as join,
    model_averaging as model_averaging,
)
from plait_distributed.algorithms import *
