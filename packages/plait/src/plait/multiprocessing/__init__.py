# Written by tools/alias_modules.py for type checkers; at run time the name is the original module.
from plait.multiprocessing import authentication as authentication
from plait.multiprocessing import connection as connection
from plait.multiprocessing import interrupts as interrupts
from plait.multiprocessing import listener as listener
from plait.multiprocessing import managers as managers
from plait.multiprocessing import pool as pool
from plait_multiprocessing import *
