// The geometry of two-dimensional pooling.
#pragma once
#include "kernel/kernel.h"

namespace plait::core {

struct Pool {
  int64_t planes, h, w, oh, ow;
  int64_t kh, kw, sh, sw, ph, pw, dh, dw;
  int64_t area() const { return h * w; }
  int64_t windows() const { return oh * ow; }
  int64_t grain() const { return kSerial / (h * w + 1) + 1; }
};

// The geometry from arguments `at` and following: kernel_size, stride, padding, and dilation if
// `dilated`.
Pool pooling(const plait_call *c, int at, bool dilated, const int64_t *in, const int64_t *out,
             int ndim);

}  // namespace plait::core
