"""Training jobs on a Ray cluster, and remote calls under PyTorch's names."""
