# Written by tools/alias_modules.py for tools; programs get the other module itself.
from plait.distributed.fsdp import wrap as wrap
from plait_distributed.fsdp import *
