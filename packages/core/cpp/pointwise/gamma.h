// The logarithm of the gamma function, digamma, polygamma, Hurwitz's zeta function, and the
// regularised incomplete gamma functions P and Q = 1 - P.
#pragma once
#include "pointwise/chebyshev_series.h"
#include "pointwise/log_gamma.h"

namespace plait::scalar::math {

PLAIT_HD_CALL double lgamma(double x) {
#if defined(__CUDA_ARCH__)
  return ::lgamma(x);
#else
  int sign;
  return ::lgamma_r(x, &sign);  // lgamma writes to a global variable, so lgamma_r is used
#endif
}

// Recurrence up to 10, then Stirling's expansion (DLMF 5.5.2, 5.11.2); reflection below 0 (5.5.4).
PLAIT_HD_CALL double digamma(double x) {
  if (x == 0) return copysign(kInf64, -x);
  if (x == kInf64) return x;
  double below = 0;
  if (x < 0) {
    if (is_whole(x)) return kNan64;
    // the distance to the nearest pole is exact; that to the pole below may not be
    below = -kPi / ::tan(kPi * (x - __builtin_round(x)));
    x = 1 - x;
  }
  double steps = 0;
  for (; x < 10; x += 1) steps += 1 / x;
  const double z = 1 / (x * x);
  double tail = 1.0 / 12;  // B_14 / 14, B_12 / 12, ...
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
  // the distance to the nearest pole is exact; those to the poles on either side may not both be
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

// The regularised incomplete gamma functions P and Q = 1 - P.

// Coefficients of eta^n in c_k(eta), Temme's uniform expansion for large a (DLMF 8.12.7
// to 8.12.11); computed from the recurrence there in rational numbers.
PLAIT_TABLE double kTemme[10][20] = {
    {-0.3333333333333333,     0.08333333333333333,     -0.014814814814814815,
     0.0011574074074074073,   0.0003527336860670194,   -0.0001787551440329218,
     3.919263178522438e-05,   -2.185448510679992e-06,  -1.85406221071516e-06,
     8.296711340953087e-07,   -1.7665952736826078e-07, 6.707853543401498e-09,
     1.0261809784240309e-08,  -4.382036018453353e-09,  9.14769958223679e-10,
     -2.5514193994946248e-11, -5.830772132550426e-11,  2.4361948020667415e-11,
     -5.0276692801141755e-12, 1.1004392031956135e-13},
    {-0.001851851851851852, -0.003472222222222222, 0.0026455026455026454, -0.0009902263374485596,
     0.00020576131687242798, -4.018775720164609e-07, -1.8098550334489977e-05, 7.64916091608111e-06,
     -1.6120900894563446e-06, 4.647127802807434e-09, 1.378633446915721e-07, -5.752545603517705e-08,
     1.1951628599778148e-08, -1.7543241719747647e-11, -1.0091543710600413e-09,
     4.162792991842583e-10, -8.56390702649298e-11},
    {0.004133597883597883, -0.0026813271604938273, 0.0007716049382716049, 2.0093878600823047e-06,
     -0.0001073665322636516, 5.2923448829120125e-05, -1.2760635188618728e-05, 3.423578734096138e-08,
     1.3721957309062934e-06, -6.298992138380055e-07, 1.4280614206064242e-07,
     -2.0477098421990866e-10, -1.409252991086752e-08, 6.228974084922022e-09,
     -1.3670488396617114e-09},
    {0.0006494341563786008, 0.00022947209362139917, -0.0004691894943952557, 0.00026772063206283885,
     -7.561801671883977e-05, -2.396505113867297e-07, 1.1082654115347302e-05,
     -5.6749528269915965e-06, 1.4230900732435883e-06, -2.7861080291528143e-11,
     -1.6958404091930278e-07, 8.099464905388083e-08, -1.9111168485973655e-08},
    {-0.0008618882909167117, 0.0007840392217200666, -0.0002990724803031902, -1.4638452578843418e-06,
     6.641498215465122e-05, -3.968365047179435e-05, 1.1375726970678419e-05, 2.507497226237533e-10,
     -1.6954149536558305e-06, 8.907507532205309e-07, -2.292934834000805e-07},
    {-0.00033679855336635813, -6.972813758365857e-05, 0.0002772753244959392,
     -0.00019932570516188847, 6.797780477937208e-05, 1.419062920643967e-07, -1.3594048189768693e-05,
     8.018470256334202e-06, -2.291481176508095e-06},
    {0.0005313079364639922, -0.0005921664373536939, 0.0002708782096718045, 7.902353232660328e-07,
     -8.153969367561969e-05, 5.61168275310625e-05, -1.8329116582843375e-05,
     -3.0796134506033047e-09},
    {0.00034436760689237765, 5.171790908260592e-05, -0.00033493161081142234, 0.0002812695154763237,
     -0.00010976582244684731, -1.2741009095484485e-07, 2.7744451511563645e-05},
    {-0.0006526239185953094, 0.0008394987206720873, -0.000438297098541721, -6.969091458420552e-07,
     0.00016644846642067547, -0.00012783517679769218},
    {-0.0005967612901927463, -7.204895416020011e-05, 0.0006782308837667328, -0.0006401475260262758,
     0.00027750107634328704},
};

// log(1 + m) - m
PLAIT_HD_CALL double log1p_minus(double m) {
  if (abs(m) > 0.3) return ::log1p(m) - m;
  const double r = m / (2 + m), z = r * r;  // log(1 + m) = 2 atanh(r)
  double q = 0;
  for (int k = 27; k > 1; k -= 2) q = q * z + 1.0 / k;
  return 2 * r * z * q - m * r;
}

// x^a exp(-x) / gamma(a + 1)
PLAIT_HD_CALL double gamma_factor(double a, double x) {
  if (a < 10) return ::exp(a * ::log(x) - x - lgamma(a + 1));
  const double z = 1 / (a * a);  // Stirling's series (DLMF 5.11.1)
  double tail = 1.0 / 156;
  tail = tail * z - 691.0 / 360360;
  tail = tail * z + 1.0 / 1188;
  tail = tail * z - 1.0 / 1680;
  tail = tail * z + 1.0 / 1260;
  tail = tail * z - 1.0 / 360;
  tail = tail * z + 1.0 / 12;
  const double main = x < a / 2 ? a * ::log(x / a) - (x - a) : a * log1p_minus((x - a) / a);
  return ::exp(main - tail / a) / sqrt(2 * kPi * a);
}
PLAIT_HD_CALL double gamma_series(double a, double x) {  // P (DLMF 8.11.4)
  double term = 1, sum = 1;
  for (int k = 1; k < 2000 && term > 1e-17 * sum; k++) sum += term *= x / (a + k);
  return sum * gamma_factor(a, x);
}
PLAIT_HD_CALL double gamma_fraction(double a, double x) {  // Q by Lentz's method (DLMF 8.9.2)
  double b = x + 1 - a, c = 1e300, d = 1 / b, f = d;
  for (int k = 1; k < 2000; k++) {
    const double n = -k * (k - a);
    b += 2;
    d = 1 / (n * d + b);
    c = b + n / c;
    const double step = c * d;
    f *= step;
    if (abs(step - 1) < 1e-16) break;
  }
  return f * a * gamma_factor(a, x);
}
// Q if `upper`, else P, whichever is the smaller one.
PLAIT_HD_CALL double gamma_uniform(double a, double x, bool upper) {
  const double m = (x - a) / a, half = -log1p_minus(m);  // eta^2 / 2
  const double eta = copysign(sqrt(2 * half), m), side = upper ? 1 : -1;
  double sum = 0;
  for (int k = 9; k >= 0; k--) {
    double c = 0;
    for (int n = 19; n >= 0; n--) c = c * eta + kTemme[k][n];
    sum = sum / a + c;
  }
  const double rest = ::exp(-a * half) / sqrt(2 * kPi * a) * sum;
  return 0.5 * ::erfc(side * eta * sqrt(a / 2)) + side * rest;
}
// Q for small x and a, where 1 - P would cancel: 1 - x^a / gamma(a + 1) - ... (DLMF 8.7.3)
PLAIT_HD_CALL double gamma_small(double a, double x) {
  double term = 1, sum = 0;
  for (int k = 1; k < 200; k++) {
    term *= -x / k;
    const double add = term / (a + k);
    sum += add;
    if (abs(add) < 1e-17 * abs(sum)) break;
  }
  const double l = a * ::log(x) - lgamma(a + 1);
  return -::expm1(l) - ::exp(l) * a * sum;
}

template <bool upper>
PLAIT_HD_CALL double incomplete_gamma(double a, double x) {
  if (!(a >= 0) || !(x >= 0)) return kNan64;
  if (a == 0) return x > 0 ? (upper ? 0 : 1) : kNan64;
  if (x == 0) return upper ? 1 : 0;
  if (a == kInf64) return x == kInf64 ? kNan64 : upper ? 1 : 0;
  if (x == kInf64) return upper ? 0 : 1;
  if (a > 20 && abs(x - a) < (a > 200 ? 4.5 * sqrt(a) + 0.02 * a : 0.3 * a))
    return gamma_uniform(a, x, upper);
  if (x > 1.1 && x > a) return upper ? gamma_fraction(a, x) : 1 - gamma_fraction(a, x);
  if (!upper) return gamma_series(a, x);
  return x <= 1.1 && a < 1 ? gamma_small(a, x) : 1 - gamma_series(a, x);
}

}  // namespace plait::scalar::math

namespace plait::scalar {

// log |gamma(x)|
PLAIT_MATH_UNARY(lgamma)

// the derivative of log gamma
PLAIT_MATH_UNARY(digamma)

// the n-th derivative of digamma
template <class T>
PLAIT_HD T polygamma_elements(T x, T n) {
  return T(math::polygamma(double(n), double(x)));
}

// Hurwitz's zeta function: the sum of (q + k)^-s
PLAIT_BINARY_IN_DOUBLE(special_zeta, math::zeta)

// the regularised lower incomplete gamma function
PLAIT_BINARY_IN_DOUBLE(special_gammainc, math::incomplete_gamma<false>)

// the regularised upper incomplete gamma function
PLAIT_BINARY_IN_DOUBLE(special_gammaincc, math::incomplete_gamma<true>)

}  // namespace plait::scalar
