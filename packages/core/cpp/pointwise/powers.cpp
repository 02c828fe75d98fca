// pow with a number as its exponent: common ones, such as 2 and 0.5, without logarithms.
#include "pointwise/powers.h"
#include "kernel/avx512.h"
#include "kernel/elementwise.h"
#include "pointwise/halves.h"

namespace plait::core {
namespace {

enum Power { kSame, kSquare, kCube, kRoot, kInverse, kInverseRoot, kInverseSquare };

template <Power power, class T>
PLAIT_INLINE T power_of(T v) {
  // pow(-inf, -0.5) is 0 and pow(-0, -0.5) is inf, as if the root of -inf were inf and that of -0
  // were 0
  const T root = v == -T(__builtin_inff()) ? T(__builtin_inff()) : __builtin_sqrt(v + T(0));
  switch (power) {
    case kSame: return v;
    case kSquare: return v * v;
    case kCube: return v * v * v;
    case kRoot: return __builtin_sqrt(v);
    case kInverse: return T(1) / v;
    case kInverseRoot: return T(1) / root;
    case kInverseSquare: return (T(1) / v) * (T(1) / v);
  }
}

template <class T, Power power>
void power_loop(char *out, char *const *in, int64_t n, const void *) {
  T *r = reinterpret_cast<T *>(out);
  const T *x = reinterpret_cast<const T *>(in[0]);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; i++) r[i] = power_of<power>(x[i]);
}
template <class H, Power power>
void half_power_loop(char *out, char *const *in, int64_t n, const void *) {
  halves_rows<H>(
      reinterpret_cast<uint16_t *>(out), n, [](float x) { return power_of<power>(x); },
      std::index_sequence<0>(), HalvesOf<H>{reinterpret_cast<const uint16_t *>(in[0])});
}

// What depends on a finite exponent that is not 0 alone.
struct Exponent {
  float y, of_zero, of_infinity;
  uint32_t sign;      // the sign bit if the power of a negative number is negative
  uint32_t negative;  // the bits of nan if a negative number has no power, else none

  explicit Exponent(float exponent) : y(exponent) {
    of_zero = y > 0 ? 0 : __builtin_inff();
    of_infinity = y > 0 ? __builtin_inff() : 0;
    const bool whole = __builtin_truncf(y) == y;
    sign = whole && __builtin_fmodf(y, 2) != 0 ? 0x80000000u : 0;
    negative = whole ? 0 : 0x7fc00000u;
  }
};

// The bits that scalar::pow gives.
struct ExponentLoop {
  static PLAIT_INLINE void run(float *r, const float *x, int64_t n, const Exponent *exponent) {
    using scalar::math::bits;
    using scalar::math::from_bits;
    const Exponent by = *exponent;
#pragma GCC ivdep
    for (int64_t i = 0; i < n; i++) {
      const float v = x[i], a = scalar::math::abs(v);
      float power = scalar::math::pow_magnitude(a, by.y);
      power = a == __builtin_inff() ? by.of_infinity : power;
      power = from_bits(bits(power) | ((v < 0) & (a < __builtin_inff()) ? by.negative : 0));
      power = a == 0 ? by.of_zero : power;
      power = from_bits(bits(power) ^ (bits(v) & by.sign));
      r[i] = v != v ? v : power;
    }
  }
};
void exponent_loop(char *out, char *const *in, int64_t n, const void *context) {
  run_loop<ExponentLoop>(reinterpret_cast<float *>(out), reinterpret_cast<const float *>(in[0]), n,
                         static_cast<const Exponent *>(context));
}

// Tiles of halves are widened, computed in float32 and rounded.
template <class H>
void half_exponent_loop(char *out, char *const *in, int64_t n, const void *context) {
  constexpr int64_t kTile = 4 * kBlock;
  float x[kTile];
  char *tile[] = {reinterpret_cast<char *>(x)};
  for (int64_t i = 0; i < n; i += kTile) {
    const int64_t m = n - i < kTile ? n - i : kTile;
    widen_run<H>(x, reinterpret_cast<const uint16_t *>(in[0]) + i, m);
    exponent_loop(tile[0], tile, m, context);
    narrow_run<H>(reinterpret_cast<uint16_t *>(out) + i, x, m);
  }
}

template <Power power>
Loop loop_of(Kind k) {
  switch (k) {
    case F32: return power_loop<float, power>;
    case F64: return power_loop<double, power>;
    case F16: return half_power_loop<Half, power>;
    case BF16: return half_power_loop<Bfloat, power>;
    default: return nullptr;
  }
}
Loop loop_of_exponent(Kind k) {
  switch (k) {
    case F32: return exponent_loop;
    case F16: return half_exponent_loop<Half>;
    case BF16: return half_exponent_loop<Bfloat>;
    default: return nullptr;
  }
}
Loop loop_for(double exponent, Kind k) {
  if (exponent == 1) return loop_of<kSame>(k);
  if (exponent == 2) return loop_of<kSquare>(k);
  if (exponent == 3) return loop_of<kCube>(k);
  // pow(-inf, 0.5) of halves is inf, and of float32 the root
  if (exponent == 0.5) return is_half(k) ? nullptr : loop_of<kRoot>(k);
  if (exponent == -1) return loop_of<kInverse>(k);
  if (exponent == -0.5) return loop_of<kInverseRoot>(k);
  if (exponent == -2) return loop_of<kInverseSquare>(k);
  return nullptr;
}

// pow(self, exponent)
plait_status pow_number(plait_call *c) {
  const DLTensor *in = tensor(c, 0);
  const int32_t tag = c->in[1].tag;
  if (!in || (tag != PLAIT_INT && tag != PLAIT_FLOAT)) return PLAIT_DECLINE;
  const DLTensor *out = result(c);
  const Kind k = kind(in->dtype);
  const Exponent exponent(static_cast<float>(real(c, 1)));
  Loop loop = loop_for(real(c, 1), k);
  if (!loop && exponent.y != 0 && __builtin_isfinite(exponent.y)) loop = loop_of_exponent(k);
  if (!loop) return PLAIT_DECLINE;
  const int item = size_of(k);
  Plan plan;
  plan.add(out, item);
  plan.add(in, item);
  plan.finish();
  run_elementwise(c, plan, Inner{loop, &exponent, {item, item}});
  return PLAIT_OK;
}
PLAIT_KERNEL_SPECIAL("pow", pow_number);

}  // namespace
}  // namespace plait::core
