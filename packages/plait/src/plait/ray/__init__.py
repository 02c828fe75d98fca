# Written by tools/alias_modules.py for tools; programs get the other module itself.
from plait.ray import autograd as autograd, functions as functions, optim as optim, rpc as rpc
from plait_ray import *
