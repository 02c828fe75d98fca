# Written by tools/alias_modules.py for type checkers; at run time the name is the original module.
from plait.distributed.algorithms import ddp_comm_hooks as ddp_comm_hooks
from plait.distributed.algorithms import join as join
from plait.distributed.algorithms import model_averaging as model_averaging
from plait_distributed.algorithms import *
