# Written by tools/alias_modules.py for tools; programs get the other module itself.
from plait.multiprocessing import connection as connection, managers as managers, pool as pool
from plait_multiprocessing import *
