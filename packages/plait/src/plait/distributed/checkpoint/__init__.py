# Written by tools/alias_modules.py for tools; programs get the other module itself.
from plait.distributed.checkpoint import stateful as stateful
from plait_distributed.checkpoint import *
