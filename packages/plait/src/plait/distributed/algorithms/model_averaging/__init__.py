# Written by tools/alias_modules.py for tools; programs get the other module itself.
from plait.distributed.algorithms.model_averaging import averagers as averagers
from plait_distributed.algorithms.model_averaging import *
