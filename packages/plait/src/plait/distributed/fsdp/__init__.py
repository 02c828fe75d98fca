# Written by tools/alias_modules.py for type checkers; at run time the name is the original module.
from plait.distributed.fsdp import wrap as wrap
from plait_distributed.fsdp import *
