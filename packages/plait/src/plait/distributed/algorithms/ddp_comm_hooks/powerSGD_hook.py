# Written by tools/alias_modules.py for type checkers; at run time the name is the original module.
from plait_distributed.algorithms.ddp_comm_hooks.powerSGD_hook import *
