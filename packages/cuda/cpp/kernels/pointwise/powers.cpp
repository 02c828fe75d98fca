// pow with common exponents, such as 2 and 0.5, without logarithms.
#include "pointwise/pointwise.h"

namespace plait::scalar {

// x^exponent for the exponents of `is_common`. pow(-inf, -0.5) is 0 and pow(-0, -0.5) is inf, as if
// the root of -inf were inf and that of -0 were 0.
template <class T>
PLAIT_HD T pow_common(T x, T exponent) {
  if (exponent == T(2)) return x * x;
  if (exponent == T(3)) return x * x * x;
  if (exponent == T(0.5)) return math::sqrt(x);
  const T inverse = T(1) / x;
  if (exponent == T(-1)) return inverse;
  if (exponent == T(-2)) return inverse * inverse;
  return T(1) / (x == -T(math::kInf) ? T(math::kInf) : math::sqrt(x + T(0)));
}

}  // namespace plait::scalar

PLAIT_POINTWISE_KERNEL(pow_common, 1, 1, SAME, FLOATING)

#if PLAIT_HOST
namespace plait::cuda {
namespace {

bool is_common(double exponent) {
  return exponent == 2 || exponent == 3 || exponent == 0.5 || exponent == -1 || exponent == -0.5 ||
         exponent == -2;
}

// pow(self, exponent)
plait_status pow_number(plait_call *c) {
  const int32_t tag = c->in[1].tag;
  if (!tensor(c, 0) || (tag != PLAIT_INT && tag != PLAIT_FLOAT)) return PLAIT_DECLINE;
  const double exponent = real(c, 1);
  // roots of half precision are those of the CPU, for which pow(-inf, 0.5) is inf
  if (exponent == 0.5 && is_half(kind(tensor(c, 0)->dtype))) return PLAIT_DECLINE;
  return is_common(exponent) ? call_pow_common(c) : PLAIT_DECLINE;
}
PLAIT_KERNEL_SPECIAL("pow", pow_number);

}  // namespace
}  // namespace plait::cuda
#endif
