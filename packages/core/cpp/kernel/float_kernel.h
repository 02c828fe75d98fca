// Kernels that serve all calls of floating-point numbers.
#pragma once
#include "kernel/kernel.h"

// Registers a kernel that declines no call whose tensors are all float32, or all float64. If a
// program has no other calls of the operator, `plait_graph.bundle` leaves out its decomposition.
#define PLAIT_FLOAT_KERNEL(op, function) PLAIT_KERNEL(op, function)
