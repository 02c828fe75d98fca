# Written by tools/alias_modules.py for tools; programs get the other module itself.
from plait.ray import autograd as autograd
from plait.ray import functions as functions
from plait.ray import optim as optim
from plait.ray import rpc as rpc
from plait_ray import *
