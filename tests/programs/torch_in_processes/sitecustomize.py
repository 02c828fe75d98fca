"""Python runs this at its start, in processes with this folder on PYTHONPATH: `torch` means plait.

library_tests.py uses it, as tests start programs with ``sys.executable``; those would else be
interpreters without `torch`.
"""

import plait_torch._preload  # noqa: F401
