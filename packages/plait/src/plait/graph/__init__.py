# Written by tools/alias_modules.py for type checkers; at run time the name is the original module.
from plait.graph import interpreter as interpreter
from plait.graph import passes as passes
from plait_graph import *
