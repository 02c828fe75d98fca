# Written by tools/alias_modules.py.
from plait.utils import checkpoint as checkpoint, data as data, tensorboard as tensorboard
