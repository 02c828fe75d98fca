# Written by tools/alias_modules.py for tools; programs get the other module itself.
from plait_distributed.algorithms.ddp_comm_hooks.powerSGD_hook import *
