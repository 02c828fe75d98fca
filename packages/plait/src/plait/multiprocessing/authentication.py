# Written by tools/alias_modules.py for tools; programs get the other module itself.
from plait_multiprocessing.authentication import *
