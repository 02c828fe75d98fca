# Written by tools/alias_modules.py for type checkers; at run time the name is the original module.
from plait.distributed.checkpoint import format_utils as format_utils
from plait.distributed.checkpoint import stateful as stateful
from plait_distributed.checkpoint import *
