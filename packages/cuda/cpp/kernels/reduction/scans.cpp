// Running sums, products, extremes with their indices, and logarithms of sums of exponentials along
// a dimension. float32 is carried in float64: an error of one result would be in all that follow.
#include "block/line_scan.h"
#if PLAIT_HOST
#include "host/copy.h"
#include "host/line_scan.h"
#endif

namespace plait::cuda {

#if PLAIT_KERNELS
template <class E>
struct Carried {  // integers wrap around
  using type =
      std::conditional_t<std::is_integral_v<E>, uint64_t,
                         std::conditional_t<scalar::math::is_complex<E>, Complex128, double>>;
};

template <class E>
struct Number {
  using Value = typename Carried<E>::type;
  static PLAIT_DEVICE Value value(E x, int64_t) { return Value(widen(x)); }
  static PLAIT_DEVICE E element(const Value &v) {
    if constexpr (std::is_integral_v<E> || scalar::math::is_complex<E>)
      return E(v);
    else
      return narrow<E>(Compute<E>(v));
  }
};
template <class E>
struct RunningSum : ScanElements<E, Number<E>> {
  using Value = typename Carried<E>::type;
  using ScanElements<E, Number<E>>::ScanElements;
  PLAIT_DEVICE Value start() const { return Value(0); }
  PLAIT_DEVICE Value step(const Value &a, const Value &b) const { return a + b; }
};
template <class E>
struct RunningProduct : ScanElements<E, Number<E>> {
  using Value = typename Carried<E>::type;
  using ScanElements<E, Number<E>>::ScanElements;
  PLAIT_DEVICE Value start() const { return Value(1); }
  PLAIT_DEVICE Value step(const Value &a, const Value &b) const {
    if constexpr (scalar::math::is_complex<Value>) {  // 1 times infinity has a part 0 * infinity
      if (a.re == 1 && a.im == 0) return b;
      if (b.re == 1 && b.im == 0) return a;
    }
    return a * b;
  }
};

// The largest (or smallest) element and its index: nan is kept, with the index of the latest; of
// equal elements the later one is taken.
template <class T>
struct LatestPlace {
  int64_t at;  // -1: no element
  T value;
};
template <class E, bool largest>
struct RunningExtreme {
  using Element = E;
  using T = Compute<E>;
  using Value = LatestPlace<T>;
  static constexpr int kWidth = int(16 / sizeof(E));
  Global<const E> x;
  Global<E> y;
  Global<int64_t> index;
  PLAIT_DEVICE RunningExtreme(Thread &t, const ScanArgs &a)
      : x(t.global<const E>(a.x)), y(t.global<E>(a.y)), index(t.global<int64_t>(a.second)) {}
  PLAIT_DEVICE Value start() const { return {-1, T(0)}; }
  PLAIT_DEVICE Value step(const Value &a, const Value &b) const {
    if (a.at < 0 || b.at < 0) return a.at < 0 ? b : a;
    const bool later = b.value != b.value ||
                       (a.value == a.value && (largest ? b.value >= a.value : b.value <= a.value));
    return later ? b : a;
  }
  PLAIT_DEVICE Value load(int64_t at, int64_t position) const {
    return {position, widen(x.load(at))};
  }
  PLAIT_DEVICE void load_vector(int64_t at, int64_t position, Value *to) const {
    const auto v = x.template load_vector<kWidth>(at);
#pragma unroll
    for (int e = 0; e < kWidth; e++) to[e] = {position + e, widen(v.at[e])};
  }
  PLAIT_DEVICE void store(int64_t at, const Value &v) const {
    y.store(at, narrow<E>(v.value));
    index.store(at, v.at);
  }
  PLAIT_DEVICE void store_vector(int64_t at, const Value *from) const {
    Vector<E, kWidth> v;
#pragma unroll
    for (int e = 0; e < kWidth; e++) {
      v.at[e] = narrow<E>(from[e].value);
      index.store(at + e, from[e].at);
    }
    y.template store_vector<kWidth>(at, v);
  }
};

// log(sum(exp(x))) as the largest real part and the sum of exp(x - that).
template <class C>
struct RunningLogSum {
  double top;
  C sum;
};
PLAIT_DEVICE double zero_if_infinite(double x) { return x - x == 0 ? x : 0; }
PLAIT_DEVICE double exp_of(double x) { return ::exp(x); }
PLAIT_DEVICE Complex128 exp_of(Complex128 z) {
  const double r = ::exp(z.re);
  if (r == 0) return Complex128(0, 0);
  return Complex128(r * ::cos(z.im), z.im == 0 ? z.im : r * ::sin(z.im));
}
template <class E>
struct LogSumNumber {
  using C = std::conditional_t<scalar::math::is_complex<E>, Complex128, double>;
  using Value = RunningLogSum<C>;
  static PLAIT_DEVICE double real_part(double x) { return x; }
  static PLAIT_DEVICE double real_part(Complex128 z) { return z.re; }
  static PLAIT_DEVICE Value value(E x, int64_t) {
    const C y = C(widen(x));
    const double top = real_part(y);
    return {top, exp_of(C(y - C(zero_if_infinite(top))))};
  }
  static PLAIT_DEVICE E element(const Value &v) {
    if constexpr (scalar::math::is_complex<E>) {
      const double size = ::hypot(v.sum.re, v.sum.im);
      const double angle = ::atan2(v.sum.im, v.sum.re);
      return E(Complex128(zero_if_infinite(v.top) + ::log(size), angle));
    } else {
      const bool infinite = v.top - v.top != 0 && v.sum == v.sum;
      return narrow<E>(Compute<E>(infinite ? v.top : zero_if_infinite(v.top) + ::log(v.sum)));
    }
  }
};
template <class E>
struct RunningLogSumExp : ScanElements<E, LogSumNumber<E>> {
  using C = typename LogSumNumber<E>::C;
  using Value = RunningLogSum<C>;
  using ScanElements<E, LogSumNumber<E>>::ScanElements;
  PLAIT_DEVICE Value start() const { return {-double(scalar::math::kInf), C(0)}; }
  // nan is in the sum, whatever the largest element is
  static PLAIT_DEVICE C moved(const Value &v, double base) {
    const double by = zero_if_infinite(v.top) - base;
    if (v.sum == C(0) || by == 0) return v.sum;
    return v.sum * C(::exp(by));
  }
  PLAIT_DEVICE Value step(const Value &a, const Value &b) const {
    const double top = a.top > b.top || b.top != b.top ? a.top : b.top;
    const double base = zero_if_infinite(top);
    return {top, moved(a, base) + moved(b, base)};
  }
};

template <class T>
PLAIT_DEVICE void scan_sum(Block &t, const ScanArgs &a) {
  scan_lines<RunningSum<T>>(t, a);
}
template <class T>
PLAIT_DEVICE void scan_product(Block &t, const ScanArgs &a) {
  scan_lines<RunningProduct<T>>(t, a);
}
template <class T>
PLAIT_DEVICE void scan_largest(Block &t, const ScanArgs &a) {
  scan_lines<RunningExtreme<T, true>>(t, a);
}
template <class T>
PLAIT_DEVICE void scan_smallest(Block &t, const ScanArgs &a) {
  scan_lines<RunningExtreme<T, false>>(t, a);
}
template <class T>
PLAIT_DEVICE void scan_logsumexp(Block &t, const ScanArgs &a) {
  scan_lines<RunningLogSumExp<T>>(t, a);
}
#endif
PLAIT_DEVICE_KERNEL(scan_sum, ScanArgs, 256, ARITHMETIC);
PLAIT_DEVICE_KERNEL(scan_product, ScanArgs, 256, ARITHMETIC);
PLAIT_DEVICE_KERNEL(scan_largest, ScanArgs, 256, ALL);
PLAIT_DEVICE_KERNEL(scan_smallest, ScanArgs, 256, ALL);
PLAIT_DEVICE_KERNEL(scan_logsumexp, ScanArgs, 256, INEXACT);

#if PLAIT_HOST
namespace {

// (self, dim, ...): the first result, and the second one if there is one. Sums of signed integers
// have the bits of those of unsigned ones.
plait_status scan(const plait_call *c, const DeviceKernel &kernel, bool has_places = false) {
  const DLTensor *out = result(c);
  Operand x;
  PLAIT_TRY(x.take_as(c, tensor(c, 0), out->dtype));
  ScanArgs a{};
  a.x = x.data(), a.y = out->data, a.second = has_places ? result(c, 1)->data : nullptr;
  return launch_scan(c, kernel, out, integer(c, 1), a);
}
plait_status cumsum(plait_call *c) { return scan(c, scan_sum_kernel); }
plait_status cumprod(plait_call *c) { return scan(c, scan_product_kernel); }
plait_status cummax(plait_call *c) { return scan(c, scan_largest_kernel, true); }
plait_status cummin(plait_call *c) { return scan(c, scan_smallest_kernel, true); }
plait_status logcumsumexp(plait_call *c) { return scan(c, scan_logsumexp_kernel); }

PLAIT_KERNEL("cumsum", cumsum);
PLAIT_KERNEL("cumprod", cumprod);
PLAIT_KERNEL("cummax", cummax);
PLAIT_KERNEL("cummin", cummin);
PLAIT_KERNEL("logcumsumexp", logcumsumexp);

}  // namespace
#endif
}  // namespace plait::cuda
