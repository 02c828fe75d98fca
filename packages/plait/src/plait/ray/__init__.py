# Written by tools/alias_modules.py for type checkers; at run time the name is the original module.
from plait.ray import autograd as autograd
from plait.ray import functions as functions
from plait.ray import optim as optim
from plait.ray import rpc as rpc
from plait_ray import *
