# Written by tools/alias_modules.py for type checkers; at run time the name is the original module.
from plait.func import pytree as pytree
from plait_func import *
