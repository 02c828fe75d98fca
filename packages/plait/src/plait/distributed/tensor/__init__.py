# Written by tools/alias_modules.py for tools; programs get the other module itself.
from plait.distributed.tensor import parallel as parallel
from plait.distributed.tensor import placement_types as placement_types
from plait_distributed.tensor import *
