// Running sums, products, extremes with their indices, and logarithms of sums of exponentials along
// a dimension. float32 is carried in float64: an error of one result would be in all that follow.
#include "block/line_scan.h"
#include "pointwise/logarithms.h"
#if PLAIT_HOST
#include "host/copy.h"
#include "host/line_scan.h"
#endif

namespace plait::cuda {

namespace scan_mode {
enum { SUM, PRODUCT, LARGEST, SMALLEST };
}

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
struct RunningNumber : ScanElements<E, Number<E>> {
  using Value = typename Carried<E>::type;
  bool is_product;
  PLAIT_DEVICE RunningNumber(Thread &t, const ScanArgs &a)
      : ScanElements<E, Number<E>>(t, a), is_product(a.mode == scan_mode::PRODUCT) {}
  PLAIT_DEVICE Value start() const { return Value(is_product ? 1 : 0); }
  PLAIT_DEVICE Value step(const Value &a, const Value &b) const {
    if (!is_product) return a + b;
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
template <class E>
struct RunningExtreme {
  using Element = E;
  using T = Compute<E>;
  using Value = LatestPlace<T>;
  static constexpr int kWidth = int(16 / sizeof(E));
  Global<const E> x;
  Global<E> y;
  Global<int64_t> index;
  bool largest;
  PLAIT_DEVICE RunningExtreme(Thread &t, const ScanArgs &a)
      : x(t.global<const E>(a.x)),
        y(t.global<E>(a.y)),
        index(t.global<int64_t>(a.second)),
        largest(a.mode == scan_mode::LARGEST) {}
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

// log(sum(exp(x))) as the largest number and the sum of exp(x - that).
struct RunningLogSum {
  double top, sum;
};
PLAIT_DEVICE double zero_if_infinite(double x) { return x - x == 0 ? x : 0; }
template <class E>
struct LogSumNumber {
  using Value = RunningLogSum;
  static PLAIT_DEVICE Value value(E x, int64_t) {
    const double y = double(widen(x));
    return {y, ::exp(y - zero_if_infinite(y))};
  }
  static PLAIT_DEVICE E element(const Value &v) {
    const bool infinite = v.top - v.top != 0 && v.sum == v.sum;
    return narrow<E>(Compute<E>(infinite ? v.top : zero_if_infinite(v.top) + ::log(v.sum)));
  }
};
template <class E>
struct RunningLogSumExp : ScanElements<E, LogSumNumber<E>> {
  using Value = RunningLogSum;
  using ScanElements<E, LogSumNumber<E>>::ScanElements;
  PLAIT_DEVICE Value start() const { return {-double(scalar::math::kInf), 0}; }
  // nan is in the sum, whatever the largest element is
  static PLAIT_DEVICE double moved(const Value &v, double base) {
    const double by = zero_if_infinite(v.top) - base;
    return v.sum == 0 || by == 0 ? v.sum : v.sum * ::exp(by);
  }
  PLAIT_DEVICE Value step(const Value &a, const Value &b) const {
    const double top = a.top > b.top || b.top != b.top ? a.top : b.top;
    const double base = zero_if_infinite(top);
    return {top, moved(a, base) + moved(b, base)};
  }
};
// Of complex numbers, one after the other: the imaginary part, an angle, depends on the order.
template <class E>
struct ComplexLogSumExp : ScanElements<E, Number<E>> {
  using Value = Complex128;
  using ScanElements<E, Number<E>>::ScanElements;
  PLAIT_DEVICE Value start() const { return Value(-double(scalar::math::kInf), 0); }
  PLAIT_DEVICE Value step(const Value &a, const Value &b) const {
    return a == start() ? b : scalar::logaddexp(a, b);
  }
};

template <class T>
PLAIT_DEVICE void scan_numbers(Block &t, const ScanArgs &a) {
  scan_lines<RunningNumber<T>>(t, a);
}
template <class T>
PLAIT_DEVICE void scan_extremes(Block &t, const ScanArgs &a) {
  scan_lines<RunningExtreme<T>>(t, a);
}
template <class T>
PLAIT_DEVICE void scan_logsumexp(Block &t, const ScanArgs &a) {
  if constexpr (scalar::math::is_complex<T>)
    scan_columns(t, ComplexLogSumExp<T>(t, a), a);
  else
    scan_lines<RunningLogSumExp<T>>(t, a);
}
#endif
// Sums and products of signed integers have the bits of those of unsigned ones.
#define PLAIT_EACH_CARRIED(X, ...)   \
  PLAIT_EACH_INEXACT(X, __VA_ARGS__) \
  X(u8, uint8_t, __VA_ARGS__)        \
  X(u16, uint16_t, __VA_ARGS__)      \
  X(u32, uint32_t, __VA_ARGS__)      \
  X(u64, uint64_t, __VA_ARGS__)
PLAIT_DEVICE_KERNEL(scan_numbers, ScanArgs, 256, CARRIED);
PLAIT_DEVICE_KERNEL(scan_extremes, ScanArgs, 256, ALL);
PLAIT_DEVICE_KERNEL(scan_logsumexp, ScanArgs, 256, INEXACT);

#if PLAIT_HOST
namespace {

// (self, dim, ...) -> the running values and, for extremes, where they are
plait_status scan(const plait_call *c, const DeviceKernel &kernel, int mode) {
  const DLTensor *out = result(c);
  const bool has_places = mode == scan_mode::LARGEST || mode == scan_mode::SMALLEST;
  const bool is_logarithm = &kernel == &scan_logsumexp_kernel;
  Kind k = kind(out->dtype);
  if (k == Bool && !has_places) return PLAIT_DECLINE;
  Operand x;
  PLAIT_TRY(x.take_as(c, tensor(c, 0), out->dtype));
  ScanArgs a{};
  a.x = x.data(), a.y = out->data, a.mode = mode;
  a.second = has_places ? result(c, 1)->data : nullptr;
  const bool is_serial = is_logarithm && is_complex_kind(k);
  if (!has_places) k = k == I8 ? U8 : k == I16 ? U16 : k == I32 ? U32 : k == I64 ? U64 : k;
  return launch_scan(c, kernel, k, out, integer(c, 1), a,
                     is_serial ? ScanOrder::kSerial : ScanOrder::kAny);
}
plait_status cumsum(plait_call *c) { return scan(c, scan_numbers_kernel, scan_mode::SUM); }
plait_status cumprod(plait_call *c) { return scan(c, scan_numbers_kernel, scan_mode::PRODUCT); }
plait_status cummax(plait_call *c) { return scan(c, scan_extremes_kernel, scan_mode::LARGEST); }
plait_status cummin(plait_call *c) { return scan(c, scan_extremes_kernel, scan_mode::SMALLEST); }
plait_status logcumsumexp(plait_call *c) { return scan(c, scan_logsumexp_kernel, scan_mode::SUM); }

PLAIT_KERNEL("cumsum", cumsum);
PLAIT_KERNEL("cumprod", cumprod);
PLAIT_KERNEL("cummax", cummax);
PLAIT_KERNEL("cummin", cummin);
PLAIT_KERNEL("logcumsumexp", logcumsumexp);

}  // namespace
#endif
}  // namespace plait::cuda
