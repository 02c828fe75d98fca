# Written by tools/alias_modules.py for type checkers; at run time the name is the original module.
from plait.distributed.algorithms.ddp_comm_hooks import debugging_hooks as debugging_hooks
from plait.distributed.algorithms.ddp_comm_hooks import default_hooks as default_hooks
from plait.distributed.algorithms.ddp_comm_hooks import post_localSGD_hook as post_localSGD_hook
from plait.distributed.algorithms.ddp_comm_hooks import powerSGD_hook as powerSGD_hook
from plait_distributed.algorithms.ddp_comm_hooks import *
