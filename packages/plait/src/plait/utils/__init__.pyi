# Written by tools/alias_modules.py.
from plait.utils import checkpoint as checkpoint
from plait.utils import data as data
from plait.utils import tensorboard as tensorboard
