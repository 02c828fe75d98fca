// The logarithm of the gamma function and digamma for float32: sums in float64, without branches
// and without the C library. |x| is raised by 8 where it is less, so that the asymptotic series has
// 8 terms at most (DLMF 5.5.1, 5.11.1, 5.11.2); reflection below 0 (5.5.3, 5.5.4).
#pragma once
#include "pointwise/chebyshev_series.h"

namespace plait::scalar::math {

// The natural logarithm of a positive, normal float64: 2 atanh(s) of its mantissa.
PLAIT_HD double log_of_normal(double x) {
  // the exponent of x / sqrt(1/2) as the low bits of 2^52 + k
  const uint64_t u = bits(x), shifted = u - 0x3fe6a09e667f3bcdu + 0x3ff0000000000000u;
  const double k = from_bits((shifted >> 52) | 0x4330000000000000u) - (0x1p52 + 1023);
  const double m = from_bits((shifted & 0xfffffffffffffu) + 0x3fe6a09e667f3bcdu);
  const double s = (m - 1) / (m + 1), z = s * s;
  double q = 1.0 / 21;
  q = fused(q, z, 1.0 / 19);
  q = fused(q, z, 1.0 / 17);
  q = fused(q, z, 1.0 / 15);
  q = fused(q, z, 1.0 / 13);
  q = fused(q, z, 1.0 / 11);
  q = fused(q, z, 1.0 / 9);
  q = fused(q, z, 1.0 / 7);
  q = fused(q, z, 1.0 / 5);
  q = fused(q, z, 1.0 / 3);
  return fused(k, 0.6931471805599453, fused(2 * s * z, q, 2 * s));
}

// pi r for |r| <= 1/2 has this sine, divided by pi r, and this cosine; z = (pi r)^2
PLAIT_HD double sine_ratio(double z) {
  double q = -1.0 / 121645100408832000;  // 1 / 19!
  q = fused(q, z, 1.0 / 355687428096000);
  q = fused(q, z, -1.0 / 1307674368000);
  q = fused(q, z, 1.0 / 6227020800);
  q = fused(q, z, -1.0 / 39916800);
  q = fused(q, z, 1.0 / 362880);
  q = fused(q, z, -1.0 / 5040);
  q = fused(q, z, 1.0 / 120);
  q = fused(q, z, -1.0 / 6);
  return fused(q, z, 1.0);
}
PLAIT_HD double cosine_of_root(double z) {
  double q = 1.0 / 2432902008176640000;  // 1 / 20!
  q = fused(q, z, -1.0 / 6402373705728000);
  q = fused(q, z, 1.0 / 20922789888000);
  q = fused(q, z, -1.0 / 87178291200);
  q = fused(q, z, 1.0 / 479001600);
  q = fused(q, z, -1.0 / 3628800);
  q = fused(q, z, 1.0 / 40320);
  q = fused(q, z, -1.0 / 720);
  q = fused(q, z, 1.0 / 24);
  q = fused(q, z, -1.0 / 2);
  return fused(q, z, 1.0);
}

// z = y or y + 8, gamma(z) = product gamma(y), and the derivative of the product.
struct Raised {
  double z, product, slope;
};
PLAIT_HD Raised raised(double y) {
  const double p0 = y * (y + 7), p1 = fused(y, y + 7, 6.0);  // y (y + 7), (y + 1) (y + 6)
  const double p2 = fused(y, y + 7, 10.0), p3 = fused(y, y + 7, 12.0);  // and so on
  const double first = p0 * p1, second = p2 * p3;
  const double slope = (2 * y + 7) * fused(p0 + p1, second, first * (p2 + p3));
  const bool low = y < 8;
  return {low ? y + 8 : y, low ? first * second : 1.0, low ? slope : 0.0};
}

// The distance to the nearest whole number.
PLAIT_HD double from_nearest(double y) { return y - ((y + 0x1.8p52) - 0x1.8p52); }

PLAIT_HD float lgamma(float x) {
  const double y = double(abs(x));
  const Raised r = raised(y);
  const double w = 1 / r.z, v = w * w;
  double tail = 1.0 / 156;  // B_2k / (2k (2k - 1))
  tail = fused(tail, v, -691.0 / 360360);
  tail = fused(tail, v, 1.0 / 1188);
  tail = fused(tail, v, -1.0 / 1680);
  tail = fused(tail, v, 1.0 / 1260);
  tail = fused(tail, v, -1.0 / 360);
  tail = fused(tail, v, 1.0 / 12);
  const double main =
      fused(r.z - 0.5, log_of_normal(r.z), fused(tail, w, 0.9189385332046727 - r.z));
  // below 0: pi / (y |sin(pi y)| gamma(y))
  const double turn = abs(from_nearest(y)) * 3.141592653589793;
  const double sine = turn * sine_ratio(turn * turn);
  const bool below = double(x) < 0;
  const double rest = log_of_normal(below ? r.product / (y * sine) : r.product);
  const double result = below ? (1.1447298858494002 - main) + rest : main - rest;
  const double exact = y == 1 || y == 2 ? 0.0 : result;  // below 0 these are poles
  const double finite = below && turn == 0 ? kInf64 : exact;
  const float limited = float(y == 0 || y == kInf64 ? kInf64 : finite);
  return x != x ? x : limited;
}

PLAIT_HD float digamma(float x) {
  const double y = double(abs(x));
  const Raised r = raised(y);
  const double w = 1 / r.z, v = w * w;
  double tail = 1.0 / 12;  // B_2k / 2k
  tail = fused(tail, v, -691.0 / 32760);
  tail = fused(tail, v, 1.0 / 132);
  tail = fused(tail, v, -1.0 / 240);
  tail = fused(tail, v, 1.0 / 252);
  tail = fused(tail, v, -1.0 / 120);
  tail = fused(tail, v, 1.0 / 12);
  const double main = fused(-tail, v, fused(-0.5, w, log_of_normal(r.z))) - r.slope / r.product;
  // below 0: 1 / y and pi / tan(pi y) are added
  const double turn = from_nearest(y) * 3.141592653589793, z = turn * turn;
  const double cotangent = 3.141592653589793 * cosine_of_root(z) / (turn * sine_ratio(z));
  const bool below = x < 0;
  const float result = float(below ? main + (1 / y + cotangent) : main);
  const float pole = y == 0 ? copysign(kInf, -x) : below && turn == 0 ? kNan : result;
  const float limited = x == kInf ? x : x == -kInf ? kNan : pole;
  return x != x ? x : limited;
}

}  // namespace plait::scalar::math
