"""What `tools/gpu_check.py` runs on a machine with a GPU: one module a part.

Each part is a function ``run(options)`` that returns JSON. Parts compare plait with the PyTorch
that is installed there, in the same process and in turns.
"""
