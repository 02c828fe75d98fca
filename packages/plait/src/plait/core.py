# mypy: disable-error-code="assignment"
# Written by tools/alias_modules.py for tools; programs get the other module itself.
from plait_core import *
from plait_core._operators import *
