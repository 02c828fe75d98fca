// Elementary functions of complex numbers where the C library has none: on GPUs. They compute in
// float64 and follow Annex G of C for infinities, NaN and the signs of zeros. Inverse functions
// are those of Hull, Fairgrieve and Tang (1997), "Implementing the complex arcsine and arccosine
// functions using exception handling"; sqrt, tanh and atanh those of Kahan (1987), "Branch cuts for
// complex elementary functions". `pointwise/complex.h` includes this file.
#pragma once

namespace plait::scalar::math {

constexpr double kHalfPi64 = 1.57079632679489662, kQuarterPi64 = 0.785398163397448310;
constexpr double kPi64 = 3.14159265358979324, kLn2In64 = 0.693147180559945309;
constexpr double kLargest64 = 1.7976931348623157e308, kInfinity64 = __builtin_inf();

PLAIT_HD bool is_finite64(double x) { return x - x == 0; }
PLAIT_HD bool is_nan64(double x) { return x != x; }
PLAIT_HD bool is_infinite64(double x) { return abs(x) == kInfinity64; }

// log|z|: near the unit circle |z|^2 - 1 is computed with the errors of its products.
PLAIT_HD_CALL double log_magnitude(double x, double y) {
  x = abs(x), y = abs(y);
  const double high = x > y ? x : y, low = x > y ? y : x;
  if (is_infinite64(x) || is_infinite64(y)) return kInfinity64;
  if (high > 0.5 * kLargest64) return ::log(::hypot(0.25 * x, 0.25 * y)) + 2 * kLn2In64;
  if (high < 1e-300) return ::log(::hypot(0x1p120 * x, 0x1p120 * y)) - 120 * kLn2In64;
  if (!(high > 0.5 && high < 1.5)) return ::log(::hypot(x, y));
  const double square = high * high, other = low * low;
  if (square + other < 0.5 || square + other > 2) return 0.5 * ::log(square + other);
  const double lost = fused(high, high, -square) + fused(low, low, -other);
  return 0.5 * ::log1p(((square - 1) + other) + lost);
}

PLAIT_HD_CALL Complex<double> log(Complex<double> z) {
  return {log_magnitude(z.re, z.im), ::atan2(z.im, z.re)};
}

PLAIT_HD_CALL Complex<double> exp(Complex<double> z) {
  const double x = z.re, y = z.im;
  if (y == 0) return {::exp(x), y};
  if (!is_finite64(y)) {
    if (x == -kInfinity64) return {0.0, copysign(0.0, y)};
    if (x == kInfinity64) return {x, y - y};
    return {y - y, y - y};
  }
  if (is_infinite64(x)) {
    const double size = x > 0 ? x : 0.0;
    return {copysign(size, ::cos(y)), copysign(size, ::sin(y))};
  }
  // two factors reach the results whose exponential alone would overflow or lose bits
  const double half = ::exp(0.5 * x);
  if (abs(x) > 700) return {half * ::cos(y) * half, half * ::sin(y) * half};
  const double size = ::exp(x);
  return {size * ::cos(y), size * ::sin(y)};
}

PLAIT_HD_CALL Complex<double> sqrt(Complex<double> z) {
  double x = z.re, y = z.im;
  if (x == 0 && y == 0) return {0.0, y};
  if (is_infinite64(y)) return {kInfinity64, y};
  if (is_nan64(x)) return {x, x};
  if (is_infinite64(x)) {
    if (x > 0) return {x, is_nan64(y) ? y : copysign(0.0, y)};
    return {is_nan64(y) ? y : 0.0, copysign(kInfinity64, y)};
  }
  if (is_nan64(y)) return {y, y};
  double scale = 1;
  if (abs(x) > 0.25 * kLargest64 || abs(y) > 0.25 * kLargest64) {
    x *= 0.0625, y *= 0.0625, scale = 4;
  } else if (abs(x) < 1e-290 && abs(y) < 1e-290) {
    x *= 0x1p120, y *= 0x1p120, scale = 0x1p-60;
  }
  const double t = sqrt(0.5 * (abs(x) + ::hypot(x, y))), other = y / (2 * t);
  if (x >= 0) return {scale * t, scale * other};
  return {scale * abs(other), copysign(scale * t, y)};
}

// The hyperbolic sine and cosine of a real number, divided by `scale`, which is e^700 where they
// would overflow.
struct SinhCosh {
  double sinh, cosh, scale;
};
PLAIT_HD_CALL SinhCosh sinh_cosh(double x) {
  if (!(abs(x) > 700) || is_infinite64(x)) return {::sinh(x), ::cosh(x), 1};
  const double size = 0.5 * ::exp(abs(x) - 700);
  return {copysign(size, x), size, 1.0142320547350045e304};
}

PLAIT_HD_CALL Complex<double> sinh(Complex<double> z) {
  const double x = z.re, y = z.im;
  if (y == 0) return {::sinh(x), y};
  if (!is_finite64(y)) return {x == 0 || is_infinite64(x) ? x : y - y, y - y};
  const SinhCosh h = sinh_cosh(x);
  const double re = h.sinh * ::cos(y), im = h.cosh * ::sin(y);
  return {x == 0 ? x * copysign(1.0, ::cos(y)) : re * h.scale, im * h.scale};
}

PLAIT_HD_CALL Complex<double> cosh(Complex<double> z) {
  const double x = z.re, y = z.im;
  if (y == 0) return {::cosh(x), is_nan64(x) ? y : y * copysign(1.0, x)};
  if (!is_finite64(y)) {
    if (is_infinite64(x)) return {kInfinity64, y - y};
    return {y - y, x == 0 ? x : y - y};
  }
  const SinhCosh h = sinh_cosh(x);
  const double re = h.cosh * ::cos(y), im = h.sinh * ::sin(y);
  return {re * h.scale, x == 0 ? x * ::sin(y) : im * h.scale};
}

PLAIT_HD_CALL Complex<double> tanh(Complex<double> z) {
  const double x = z.re, y = z.im;
  if (y == 0) return {::tanh(x), y};
  if (is_infinite64(x)) {
    const double sign = is_finite64(y) ? ::sin(y) * ::cos(y) : y;
    return {copysign(1.0, x), copysign(0.0, sign)};
  }
  if (!is_finite64(y)) return {x == 0 ? x : y - y, y - y};
  if (abs(x) > 22) {  // 1 - |tanh(x)| is below the last bit
    const double e = ::exp(-abs(x));
    return {copysign(1.0, x), 4 * ::sin(y) * ::cos(y) * e * e};
  }
  const double t = ::tan(y), beta = 1 + t * t, s = ::sinh(x), rho = sqrt(1 + s * s);
  if (is_infinite64(beta)) return {rho / s, 1 / t};
  const double below = 1 + beta * s * s;
  return {beta * rho * s / below, t / below};
}

// What the inverse sine and cosine of x + i y share, for x, y >= 0: hypot(x + 1, y) = r,
// hypot(x - 1, y) = s, half of their sum, and the imaginary part.
struct InverseSine {
  double r, s, half_sum, imaginary;
};
PLAIT_HD_CALL InverseSine inverse_sine(double x, double y) {
  const double r = ::hypot(x + 1, y), s = ::hypot(x - 1, y), a = 0.5 * (r + s);
  if (a > 1.5) return {r, s, a, ::log(a + sqrt(a * a - 1))};
  if (x < 1 && y < 1e-150) return {r, s, a, y / sqrt((1 - x) * (1 + x))};
  const double rest = x < 1 ? y / (s + (1 - x)) * y : s + (x - 1);
  const double m = 0.5 * (y / (r + x + 1) * y + rest);  // a - 1
  if (x == 1 && y < 1e-150) return {r, s, a, sqrt(y)};
  return {r, s, a, ::log1p(m + sqrt(m * (a + 1)))};
}

PLAIT_HD_CALL Complex<double> asin(Complex<double> z) {
  const double x = abs(z.re), y = abs(z.im);
  if (is_nan64(x) || is_nan64(y)) {
    if (is_infinite64(x)) return {y, copysign(x, z.im)};
    if (is_infinite64(y)) return {x, z.im};
    return x == 0 ? Complex<double>(z.re, y) : Complex<double>(x + y, x + y);
  }
  double re, im;
  if (x > 1e150 || y > 1e150) {
    re = is_infinite64(x) && is_infinite64(y) ? kQuarterPi64 : ::atan2(x, y);
    im = log_magnitude(x, y) + kLn2In64;
  } else {
    const InverseSine h = inverse_sine(x, y);
    const double a = h.half_sum, b = x / a;
    im = h.imaginary;
    if (b <= 0.6417) {
      re = ::asin(b);
    } else if (x <= 1) {
      re = ::atan(x / sqrt(0.5 * (a + x) * (y / (h.r + x + 1) * y + (h.s + (1 - x)))));
    } else {
      re = ::atan(x / (y * sqrt(0.5 * ((a + x) / (h.r + x + 1) + (a + x) / (h.s + (x - 1))))));
    }
  }
  return {copysign(re, z.re), copysign(im, z.im)};
}

PLAIT_HD_CALL Complex<double> acos(Complex<double> z) {
  const double x = abs(z.re), y = abs(z.im);
  if (is_nan64(x) || is_nan64(y)) {
    if (is_infinite64(x)) return {y, -copysign(x, z.im)};
    if (is_infinite64(y)) return {x, -z.im};
    return x == 0 ? Complex<double>(kHalfPi64, y) : Complex<double>(x + y, x + y);
  }
  double re, im;
  if (x > 1e150 || y > 1e150) {
    re = is_infinite64(x) && is_infinite64(y) ? kQuarterPi64 : ::atan2(y, x);
    im = log_magnitude(x, y) + kLn2In64;
  } else {
    const InverseSine h = inverse_sine(x, y);
    const double a = h.half_sum, b = x / a;
    im = h.imaginary;
    if (b <= 0.6417) {
      re = ::acos(b);
    } else if (x <= 1) {
      re = ::atan(sqrt(0.5 * (a + x) * (y / (h.r + x + 1) * y + (h.s + (1 - x)))) / x);
    } else {
      re = ::atan(y * sqrt(0.5 * ((a + x) / (h.r + x + 1) + (a + x) / (h.s + (x - 1)))) / x);
    }
  }
  const bool negative = bits(z.re) >> 63;
  return {negative ? kPi64 - re : re, copysign(im, bits(z.im) >> 63 ? 1.0 : -1.0)};
}

PLAIT_HD_CALL Complex<double> atanh(Complex<double> z) {
  const double x = abs(z.re), y = abs(z.im);
  if (is_nan64(x) || is_nan64(y)) {
    if (is_infinite64(x)) return {copysign(0.0, z.re), y};
    if (is_infinite64(y)) return {copysign(0.0, z.re), copysign(kHalfPi64, z.im)};
    return x == 0 ? Complex<double>(z.re, y) : Complex<double>(x + y, x + y);
  }
  double re, im;
  if (x > 1e150 || y > 1e150) {  // x / |z|^2
    const double size = ::hypot(0.5 * x, 0.5 * y);
    re = is_infinite64(size) ? 0.0 : 0.25 * (x / size) / size;
    im = kHalfPi64;
  } else if (x == 1 && y < 1e-150) {
    re = y == 0 ? kInfinity64 : 0.5 * (kLn2In64 - ::log(y));
    im = y == 0 ? 0.0 : kQuarterPi64;
  } else {
    re = 0.25 * ::log1p(4 * x / ((1 - x) * (1 - x) + y * y));
    im = 0.5 * ::atan2(2 * y, (1 - x) * (1 + x) - y * y);
  }
  return {copysign(re, z.re), copysign(im, z.im)};
}

// The others by multiplication with i.
PLAIT_HD_CALL Complex<double> asinh(Complex<double> z) {
  const Complex<double> w = asin(Complex<double>(-z.im, z.re));
  return {w.im, -w.re};
}
PLAIT_HD_CALL Complex<double> acosh(Complex<double> z) {
  const Complex<double> w = acos(z);
  return {abs(w.im), copysign(w.re, z.im)};
}
PLAIT_HD_CALL Complex<double> atan(Complex<double> z) {
  const Complex<double> w = atanh(Complex<double>(-z.im, z.re));
  return {w.im, -w.re};
}
template <bool quick = false>
PLAIT_HD_CALL Complex<double> sin(Complex<double> z) {
  const Complex<double> w = sinh(Complex<double>(-z.im, z.re));
  return {w.im, -w.re};
}
template <bool quick = false>
PLAIT_HD_CALL Complex<double> cos(Complex<double> z) {
  return cosh(Complex<double>(-z.im, z.re));
}
template <bool quick = false>
PLAIT_HD_CALL Complex<double> tan(Complex<double> z) {
  const Complex<double> w = tanh(Complex<double>(-z.im, z.re));
  return {w.im, -w.re};
}

#define PLAIT_COMPLEX_FUNCTION(name)                    \
  PLAIT_HD_CALL Complex<float> name(Complex<float> z) { \
    return Complex<float>(name(Complex<double>(z)));    \
  }
#define PLAIT_COMPLEX_TRIGONOMETRIC(name)                   \
  template <bool quick = false>                             \
  PLAIT_HD_CALL Complex<float> name(Complex<float> z) {     \
    return Complex<float>(name<quick>(Complex<double>(z))); \
  }
PLAIT_COMPLEX_FUNCTION(exp)
PLAIT_COMPLEX_FUNCTION(log)
PLAIT_COMPLEX_FUNCTION(sqrt)
PLAIT_COMPLEX_FUNCTION(asin)
PLAIT_COMPLEX_FUNCTION(acos)
PLAIT_COMPLEX_FUNCTION(atan)
PLAIT_COMPLEX_FUNCTION(sinh)
PLAIT_COMPLEX_FUNCTION(cosh)
PLAIT_COMPLEX_FUNCTION(tanh)
PLAIT_COMPLEX_FUNCTION(asinh)
PLAIT_COMPLEX_FUNCTION(acosh)
PLAIT_COMPLEX_FUNCTION(atanh)
PLAIT_COMPLEX_TRIGONOMETRIC(sin)
PLAIT_COMPLEX_TRIGONOMETRIC(cos)
PLAIT_COMPLEX_TRIGONOMETRIC(tan)
#undef PLAIT_COMPLEX_FUNCTION
#undef PLAIT_COMPLEX_TRIGONOMETRIC

}  // namespace plait::scalar::math
