// A number of the host as an element.
#include "host/launch.h"

namespace plait::core {
namespace {

// float64 to float32 such that rounding the result to a half equals rounding the float64 once: a
// result that is not exact gets an odd last bit, toward zero.
float odd(double x) {
  const float f = float(x);
  const double error = x - double(f);
  if (!(error != 0) || error != error || f - f != 0) return f;
  const uint32_t u = scalar::math::bits(f);
  const bool is_away = (error > 0) == ((u >> 31) != 0);
  return scalar::math::from_bits(is_away ? (u - 1) | 1 : u | 1);
}

}  // namespace

void store_number(Kind k, const plait_value &v, void *to) {
  const double x = v.tag == PLAIT_FLOAT     ? v.u.f
                   : v.tag == PLAIT_COMPLEX ? v.u.fs[0]
                                            : double(v.u.i);
  const bool is_integer = v.tag != PLAIT_FLOAT && v.tag != PLAIT_COMPLEX;
  const int64_t i = is_integer ? v.u.i : x >= -9.2e18 && x <= 9.2e18 ? int64_t(x) : 0;
  const double imaginary = v.tag == PLAIT_COMPLEX ? v.u.fs[1] : 0;
  auto put = [to](auto element) { memcpy(to, &element, sizeof element); };
  switch (k) {
    case Bool: return put(is_integer ? i != 0 : x != 0 || imaginary != 0);
    case U8: return put(uint8_t(i));
    case I8: return put(int8_t(i));
    case U16: return put(uint16_t(i));
    case I16: return put(int16_t(i));
    case U32: return put(uint32_t(i));
    case I32: return put(int32_t(i));
    case U64: return put(uint64_t(i));
    case I64: return put(i);
    case F32: return put(float(x));
    case F64: return put(x);
    case F16: return put(cuda::narrow<cuda::Half>(odd(x)));
    case BF16: return put(cuda::narrow<cuda::BFloat>(odd(x)));
    case C64:
      put(float(x));
      return (void)memcpy(static_cast<char *>(to) + 4, &(const float &)float(imaginary), 4);
    case C128: put(x); return (void)memcpy(static_cast<char *>(to) + 8, &imaginary, 8);
    default: return;
  }
}

}  // namespace plait::core
