# Written by tools/alias_modules.py for type checkers; at run time the name is the original module.
from plait.distributed.tensor import parallel as parallel
from plait.distributed.tensor import placement_types as placement_types
from plait_distributed.tensor import *
