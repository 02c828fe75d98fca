# Written by tools/alias_modules.py for tools; programs get the other module itself.
from plait.distributed.algorithms import ddp_comm_hooks as ddp_comm_hooks
from plait.distributed.algorithms import join as join
from plait.distributed.algorithms import model_averaging as model_averaging
from plait_distributed.algorithms import *
