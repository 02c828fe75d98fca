# Written by tools/alias_modules.py for type checkers; at run time the name is the original module.
from plait_multiprocessing.interrupts import *
