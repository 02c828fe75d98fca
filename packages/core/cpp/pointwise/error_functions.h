// The error function and its relatives: scaled, inverse, and the normal distribution's.
#pragma once
#include "pointwise/chebyshev_series.h"

namespace plait::scalar::math {

// (1 + 2 x) exp(x^2) erfc(x) for x >= 0 in (x - 3.75) / (x + 3.75), the variable of Shepherd and
// Laframboise (1981), "Chebyshev approximation of (1 + 2x) exp(x^2) erfc x"; own coefficients
PLAIT_TABLE double kErfcx[25] = {
    1.1775789345674017,     -0.004590054580646478,   -0.08424913336651792,
    0.05920993999819189,    -0.026658668435305753,   0.009074997670705265,
    -0.002413163540417608,  0.0004907758365258086,   -6.916973302501207e-05,
    4.13902798607301e-06,   7.74038306619849e-07,    -2.1886401049234397e-07,
    1.076499946567091e-08,  4.521959811218287e-09,   -7.754400208831351e-10,
    -6.318088340886684e-11, 2.86879501093067e-11,    1.9455868545777347e-13,
    -9.65469674843344e-13,  3.25254814814874e-14,    3.3478119482868056e-14,
    -1.864562880419313e-15, -1.2507950530688648e-15, 7.418235256624044e-17,
    5.068148904796111e-17};

PLAIT_HD_CALL double erfcx(double x) {
  if (x < 0) {
    if (x < -26.7) return kInf64;
    // x^2 in two parts: its rounding would be magnified by the exponential
    const double high = from_bits(bits(x) & 0xfffffffff8000000u), low = x - high;
    return 2 * (::exp(high * high) * ::exp(low * (x + high))) - erfcx(-x);
  }
  if (x > 1e8) return 1 / (kSqrtPi * x);
  return chebyshev(kErfcx, (x - 3.75) / (x + 3.75)) / (1 + 2 * x);
}

// The y > 0 with erfc(y) = q, for q <= 1: Winitzki's formula (2008), then Halley's steps.
PLAIT_HD_CALL double erfc_inverse(double q) {
  if (q == 0) return kInf64;
  const double l = ::log(q) + ::log(2 - q), a = 2 / (kPi * 0.147) + l / 2;
  double y = sqrt(sqrt(a * a - l / 0.147) - a);
  for (int step = 0; step < 3; step++) {
    const double slope = 2 / kSqrtPi * ::exp(-y * y), u = (::erfc(y) - q) / slope;
    if (!(slope > 0)) break;
    y += u / (1 - y * u);
  }
  return y;
}
PLAIT_HD_CALL double erfinv(double x) {
  const double a = abs(x);
  if (!(a < 1)) return a == 1 ? copysign(kInf64, x) : kNan64;
  if (a > 0.5) return copysign(erfc_inverse(1 - a), x);
  const double l = ::log1p(-a * a), b = 2 / (kPi * 0.147) + l / 2;
  double y = a < 1e-4 ? a * (kSqrtPi / 2) : sqrt(sqrt(b * b - l / 0.147) - b);
  for (int step = 0; step < 2; step++) {
    const double u = (::erf(y) - a) / (2 / kSqrtPi * ::exp(-y * y));
    y -= u / (1 + y * u);
  }
  return x == 0 ? x : copysign(y, x);
}

// Of float32, without branches: erfinv(x) / x is smooth in w = -log(1 - x^2), and further out in
// its root (Giles 2010, "Approximating the erfinv function"; own coefficients).
PLAIT_HD float erfinv(float x) {
  const float a = abs(x), w = -log((1.0f - a) * (1.0f + a));
  const double t = double(w) - 2.5, s = sqrt(double(w)) - 3.0;
  double near = 1.3368339355675644e-10;
  near = fused(near, t, 4.3634438184362034e-10);
  near = fused(near, t, -1.1037704854771044e-08);
  near = fused(near, t, 1.646795811567755e-08);
  near = fused(near, t, 4.797919400036389e-07);
  near = fused(near, t, -3.4260708125322883e-06);
  near = fused(near, t, -4.999023204456785e-06);
  near = fused(near, t, 0.00021826368835452034);
  near = fused(near, t, -0.0012527045695057003);
  near = fused(near, t, -0.004177324738399455);
  near = fused(near, t, 0.2466402756836833);
  near = fused(near, t, 1.501409351705281);
  double far = 9.912202684433492e-05;
  far = fused(far, s, -0.0002926045904511732);
  far = fused(far, s, -3.265674727253475e-05);
  far = fused(far, s, 0.0014633353221397672);
  far = fused(far, s, -0.003610364940776052);
  far = fused(far, s, 0.005695574125107561);
  far = fused(far, s, -0.007634374807432547);
  far = fused(far, s, 0.009444245211881763);
  far = fused(far, s, 1.0016747715803347);
  far = fused(far, s, 2.8329768189266757);
  const float y = float(double(x) * (w < 5.0f ? near : far));
  return a == 1.0f ? copysign(kInf, x) : y;
}

PLAIT_HD_CALL double ndtr(double x) { return 0.5 * ::erfc(-x * 0.707106781186547524); }
PLAIT_HD_CALL double log_ndtr(double x) {
  const double t = x * 0.707106781186547524;
  if (x < -1) return ::log(erfcx(-t) / 2) - t * t;
  return ::log1p(-::erfc(t) / 2);
}
// Of float32, without branches: half of erfcx(|t|) is the normal distribution's tail over
// exp(-t^2). The rounding error of t^2 is a factor of its own.
PLAIT_HD float log_ndtr(float x) {
  const double t = double(x) * 0.707106781186547524, size = abs(t), a = size > 1e8 ? 1e8 : size;
  const double e = half_erfcx(a);
  const double square = a > 20 ? 400.0 : a * a;
  const float high = float(square), low = float(square - double(high));
  const float upper = log1p(-float(e) * exp(-high) * (1.0f - low));
  const float lower = float(double(log(float(e))) - t * t);
  return x < 0.0f ? lower : upper;
}
PLAIT_HD_CALL double ndtri(double p) {
  if (!(p >= 0 && p <= 1)) return kNan64;
  if (p > 0.25 && p < 0.75) return 1.41421356237309505 * erfinv(2 * (p - 0.5));
  const double y = 1.41421356237309505 * erfc_inverse(2 * (p < 0.5 ? p : 1 - p));
  return p < 0.5 ? -y : y;
}

}  // namespace plait::scalar::math

namespace plait::scalar {

// the error function
PLAIT_MATH_UNARY(erf)

// 1 - erf(x), exact in the tail
PLAIT_MATH_UNARY(erfc)

// the inverse of erf
PLAIT_MATH_UNARY(erfinv)

// exp(x^2) erfc(x)
PLAIT_UNARY_IN_DOUBLE(special_erfcx, math::erfcx)

// the normal distribution's cumulative function
PLAIT_UNARY_IN_DOUBLE(special_ndtr, math::ndtr)

// the inverse of ndtr
PLAIT_UNARY_IN_DOUBLE(special_ndtri, math::ndtri)

// log(ndtr(x))
template <class T>
PLAIT_HD T special_log_ndtr(T x) {
  return math::log_ndtr(x);
}

// -x log(x), 0 at 0, -infinity below
template <class T>
PLAIT_HD T special_entr(T x) {
  return x > T(0) ? -x * math::log(x) : x == T(0) ? T(0) : x != x ? x : -T(math::kInf);
}

}  // namespace plait::scalar
