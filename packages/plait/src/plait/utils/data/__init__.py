# Written by tools/alias_modules.py for tools; programs get the other module itself.
from plait.utils.data import collate as collate
from plait.utils.data import distributed as distributed
from plait_data import *
