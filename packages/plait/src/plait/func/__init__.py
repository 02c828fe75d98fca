# Written by tools/alias_modules.py for tools; programs get the other module itself.
from plait.func import pytree as pytree
from plait_func import *
