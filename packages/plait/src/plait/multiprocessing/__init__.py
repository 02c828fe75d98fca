# Written by tools/alias_modules.py for tools; programs get the other module itself.
from plait.multiprocessing import authentication as authentication
from plait.multiprocessing import connection as connection
from plait.multiprocessing import listener as listener
from plait.multiprocessing import managers as managers
from plait.multiprocessing import pool as pool
from plait_multiprocessing import *
