# Written by tools/alias_modules.py for type checkers; at run time the name is the original module.
from plait.utils.data import collate as collate
from plait.utils.data import distributed as distributed
from plait_data import *
