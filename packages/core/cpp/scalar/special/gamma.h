// Digamma, Hurwitz's zeta function and polygamma.
#pragma once
#include "scalar/special/chebyshev.h"

namespace plait::scalar::math {

PLAIT_HD_CALL double lgamma(double x) {
  int sign;
  return ::lgamma_r(x, &sign);  // lgamma itself writes a global
}

// Recurrence up to 10, then Stirling's expansion (DLMF 5.5.2, 5.11.2); reflection below 0 (5.5.4).
PLAIT_HD_CALL double digamma(double x) {
  if (x == 0) return copysign(kInf64, -x);
  if (x == kInf64) return x;
  double below = 0;
  if (x < 0) {
    if (is_whole(x)) return kNan64;
    // the distance to the nearest pole: exact, where that to the one below may not be
    below = -kPi / ::tan(kPi * (x - __builtin_round(x)));
    x = 1 - x;
  }
  double steps = 0;
  for (; x < 10; x += 1) steps += 1 / x;
  const double z = 1 / (x * x);
  double tail = 1.0 / 12;  // B_14 / 14 and so on down
  tail = tail * z - 691.0 / 32760;
  tail = tail * z + 1.0 / 132;
  tail = tail * z - 1.0 / 240;
  tail = tail * z + 1.0 / 252;
  tail = tail * z - 1.0 / 120;
  tail = tail * z + 1.0 / 12;
  return ::log(x) - 0.5 / x - z * tail - steps + below;
}

// sum of (q + k)^-s for q > 0 by Euler and Maclaurin's formula (DLMF 25.11.28)
PLAIT_HD_CALL double zeta_positive(double s, double q) {
  double sum = 0;
  for (; q < 10 + s; q += 1) {  // where the expansion converges
    const double term = ::pow(q, -s);
    sum += term;
    if (term <= 1e-17 * sum) return sum;  // also where both are 0 or infinite
  }
  const double power = ::pow(q, -s);
  sum += power * q / (s - 1) + power / 2;
  // B_2j / (2j)! for j = 1, 2, ...
  constexpr double ratio[12] = {1.0 / 12,
                                -1.0 / 720,
                                1.0 / 30240,
                                -1.0 / 1209600,
                                1.0 / 47900160,
                                -691.0 / 1307674368000.0,
                                1.0 / 74724249600.0,
                                -3617.0 / 10670622842880000.0,
                                43867.0 / 5109094217170944000.0,
                                -174611.0 / 802857662698291200000.0,
                                77683.0 / 14101100039391805440000.0,
                                -236364091.0 / 1693824136731743669452800000.0};
  double factor = s * power / q;
  for (int j = 0; j < 12; j++) {
    const double term = ratio[j] * factor;
    sum += term;
    if (abs(term) < 1e-17 * abs(sum)) break;
    factor *= (s + 2 * j + 1) * (s + 2 * j + 2) / (q * q);
  }
  return sum;
}
// For q < 0 and whole s the terms below 0 are a difference of two such sums.
PLAIT_HD_CALL double zeta(double s, double q) {
  if (s == 1) return kInf64;
  if (!(s > 1) || q != q) return kNan64;
  if (abs(q) == kInf64) return q > 0 ? 0 : kNan64;
  if (q > 0) return zeta_positive(s, q);
  if (is_whole(q)) return kInf64;
  if (!is_whole(s)) return kNan64;
  // the distance to the nearest pole is exact: of the places above and below it one may not be
  const double near = q - __builtin_round(q);
  const double rest = near > 0 ? near : 1 + near, gap = near > 0 ? 1 - near : -near;
  const double below = zeta_positive(s, gap) - zeta_positive(s, 1 - q);
  const bool odd = __builtin_fmod(s, 2) != 0;
  return zeta_positive(s, rest) + (odd ? -below : below);
}

PLAIT_HD_CALL double polygamma(double n, double x) {
  if (n == 0) return digamma(x);
  const double scale = n < 171 ? ::tgamma(n + 1) : ::exp(lgamma(n + 1));
  return (__builtin_fmod(n, 2) != 0 ? scale : -scale) * zeta(n + 1, x);
}

}  // namespace plait::scalar::math
