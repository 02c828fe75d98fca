// Runs a contiguous inner loop over tensors with any strides.
#pragma once
#include "kernel/plan.h"

namespace plait::core {

// out[i] = f(in[0][i], in[1][i], ...) for i < n, everything contiguous. An operator has no other
// loop: strided and broadcast operands pass through buffers of kBlock elements, which stay in the
// first-level cache, and so do rows of a few elements, several together.
using Loop = void (*)(char *out, char *const *in, int64_t n, const void *context);
constexpr int64_t kBlock = 256;

struct Inner {
  Loop loop;
  const void *context;
  int item[kMaxOperands];  // bytes of an element of each operand, the result first
};

// Operand 0 of the plan is the result.
void run_elementwise(const plait_call *c, const Plan &plan, const Inner &inner);

// Contiguous <-> strided (stride in bytes; 0 repeats one element), elements of 1, 2, 4, 8 or 16
// bytes.
void gather(char *to, const char *from, int64_t stride, int64_t n, int item);
void scatter(char *to, int64_t stride, const char *from, int64_t n, int item);

}  // namespace plait::core
