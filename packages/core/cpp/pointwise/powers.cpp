// pow with common exponents, such as 2 and 0.5, without logarithms.
#include "kernel/elementwise.h"

namespace plait::core {
namespace {

enum Power { kSame, kSquare, kCube, kRoot, kInverse, kInverseRoot, kInverseSquare };

template <class T, Power power>
void power_loop(char *out, char *const *in, int64_t n, const void *) {
  T *r = reinterpret_cast<T *>(out);
  const T *x = reinterpret_cast<const T *>(in[0]);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; i++) {
    const T v = x[i];
    // pow(-inf, -0.5) is 0 and pow(-0, -0.5) is inf, as if the root of -inf were inf and that of -0
    // were 0
    const T root = v == -T(__builtin_inff()) ? T(__builtin_inff()) : __builtin_sqrt(v + T(0));
    switch (power) {
      case kSame: r[i] = v; break;
      case kSquare: r[i] = v * v; break;
      case kCube: r[i] = v * v * v; break;
      case kRoot: r[i] = __builtin_sqrt(v); break;
      case kInverse: r[i] = T(1) / v; break;
      case kInverseRoot: r[i] = T(1) / root; break;
      case kInverseSquare: r[i] = (T(1) / v) * (T(1) / v); break;
    }
  }
}

template <class T>
Loop loop_for(double exponent) {
  if (exponent == 1) return power_loop<T, kSame>;
  if (exponent == 2) return power_loop<T, kSquare>;
  if (exponent == 3) return power_loop<T, kCube>;
  if (exponent == 0.5) return power_loop<T, kRoot>;
  if (exponent == -1) return power_loop<T, kInverse>;
  if (exponent == -0.5) return power_loop<T, kInverseRoot>;
  if (exponent == -2) return power_loop<T, kInverseSquare>;
  return nullptr;
}

// pow(self, exponent)
plait_status pow_number(plait_call *c) {
  const DLTensor *in = tensor(c, 0);
  const int32_t tag = c->in[1].tag;
  if (!in || (tag != PLAIT_INT && tag != PLAIT_FLOAT)) return PLAIT_DECLINE;
  const DLTensor *out = result(c);
  const Kind k = kind(in->dtype);
  const double exponent = real(c, 1);
  const Loop loop = k == F32   ? loop_for<float>(exponent)
                    : k == F64 ? loop_for<double>(exponent)
                               : nullptr;
  if (!loop) return PLAIT_DECLINE;
  const int item = size_of(k);
  Plan plan;
  plan.add(out, item);
  plan.add(in, item);
  plan.finish();
  run_elementwise(c, plan, Inner{loop, nullptr, {item, item}});
  return PLAIT_OK;
}
PLAIT_KERNEL_SPECIAL("pow", pow_number);

}  // namespace
}  // namespace plait::core
