"""Several tensors, or several copies of one, as one."""
