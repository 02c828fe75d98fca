# Written by tools/alias_modules.py for type checkers; at run time the name is the original module.
from plait.distributed.algorithms.model_averaging import averagers as averagers
from plait_distributed.algorithms.model_averaging import *
