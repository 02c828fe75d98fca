"""The package `plait.nn.functional` itself, for functions of it that consist of others.

Programs put functions of their own into the package, to count operations or to compute them in
another way. A function calls ``F.linear`` so that it calls what is there at the time of the call.
The modules of the package cannot import from it, as it imports them.
"""

from __future__ import annotations

import sys

F = sys.modules[__name__.rpartition(".")[0]]
