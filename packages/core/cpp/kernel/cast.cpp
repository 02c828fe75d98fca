// Conversions. float16 and bfloat16 go through float32 or, where that would round twice, through
// float64; float8 goes through float32.
#include "kernel/cast.h"

#include <plait/float8.h>

#include <type_traits>

#include "kernel/half.h"

namespace plait::core {
namespace {

template <class S, class D>
PLAIT_INLINE D convert(S x) {
  if constexpr (is_float<S> && !is_float<D> && sizeof(D) < 4 && D(2) != D(1)) {
    return D(
        int32_t(x));  // by way of int32, so that small negative numbers wrap around as integers do
  } else if constexpr (is_float<S> && (sizeof(D) == 4) && D(-1) > D(0) && !is_float<D>) {
    return D(int64_t(x));
  } else if constexpr (is_float<S> && sizeof(D) == 8 && D(-1) > D(0) && !is_float<D>) {
    return x >= S(9223372036854775808.0) ? D(int64_t(x - S(9223372036854775808.0))) + (D(1) << 63)
                                         : D(int64_t(x));
  } else {
    return static_cast<D>(x);
  }
}

template <class S, class D>
void convert_loop(char *out, char *const *in, int64_t n, const void *) {
  // compilers vectorise conversions of bytes, and not those of bools
  using From = std::conditional_t<std::is_same_v<S, bool>, uint8_t, S>;
  D *to = reinterpret_cast<D *>(out);
  const From *from = reinterpret_cast<const From *>(in[0]);
  if constexpr (std::is_same_v<D, bool>) {
    for (int64_t i = 0; i < n; i++) to[i] = from[i] != From(0);
  } else {
    for (int64_t i = 0; i < n; i++) to[i] = convert<From, D>(from[i]);
  }
}

// Of a build without one of the dtypes: none.
template <class S, class D, Kind from, Kind to>
constexpr Loop convert_if() {
  if constexpr (selects(from) && selects(to)) {
    return convert_loop<S, D>;
  } else {
    return nullptr;
  }
}
template <class S, Kind k>
struct From {
  static constexpr Loop to[kReal] = {
      convert_if<S, bool, k, Bool>(),   convert_if<S, uint8_t, k, U8>(),
      convert_if<S, int8_t, k, I8>(),   convert_if<S, uint16_t, k, U16>(),
      convert_if<S, int16_t, k, I16>(), convert_if<S, uint32_t, k, U32>(),
      convert_if<S, int32_t, k, I32>(), convert_if<S, uint64_t, k, U64>(),
      convert_if<S, int64_t, k, I64>(), convert_if<S, float, k, F32>(),
      convert_if<S, double, k, F64>()};
};
constexpr const Loop *kConvert[kReal] = {
    From<bool, Bool>::to,    From<uint8_t, U8>::to,   From<int8_t, I8>::to,
    From<uint16_t, U16>::to, From<int16_t, I16>::to,  From<uint32_t, U32>::to,
    From<int32_t, I32>::to,  From<uint64_t, U64>::to, From<int64_t, I64>::to,
    From<float, F32>::to,    From<double, F64>::to};

void half_to_float(char *out, char *const *in, int64_t n, const void *) {
  widen_run<Half>(reinterpret_cast<float *>(out), reinterpret_cast<const uint16_t *>(in[0]), n);
}
void bfloat_to_float(char *out, char *const *in, int64_t n, const void *) {
  widen_run<Bfloat>(reinterpret_cast<float *>(out), reinterpret_cast<const uint16_t *>(in[0]), n);
}
void float_to_half(char *out, char *const *in, int64_t n, const void *) {
  narrow_run<Half>(reinterpret_cast<uint16_t *>(out), reinterpret_cast<const float *>(in[0]), n);
}
void float_to_bfloat(char *out, char *const *in, int64_t n, const void *) {
  narrow_run<Bfloat>(reinterpret_cast<uint16_t *>(out), reinterpret_cast<const float *>(in[0]), n);
}
template <class Narrow>
void double_to(char *out, char *const *in, int64_t n, const void *) {
  uint16_t *to = reinterpret_cast<uint16_t *>(out);
  const double *from = reinterpret_cast<const double *>(in[0]);
  float odd[kBlock];
  for (int64_t at = 0; at < n; at += kBlock) {
    const int64_t m = n - at < kBlock ? n - at : kBlock;
    for (int64_t i = 0; i < m; i++) odd[i] = round_to_odd(from[at + i]);
    narrow_run<Narrow>(to + at, odd, m);
  }
}

// Integers of 8 bytes. Processors convert small ones by way of int32 and float32, which hold them
// exactly, several times as fast as others by way of float64.
template <class S, class Narrow>
void long_to(char *out, char *const *in, int64_t n, const void *) {
  constexpr uint64_t below_zero = S(-1) < S(0) ? 1 << 24 : 0;
  uint16_t *to = reinterpret_cast<uint16_t *>(out);
  const S *from = reinterpret_cast<const S *>(in[0]);
  float some[kBlock];
  for (int64_t at = 0; at < n; at += kBlock, from += kBlock) {
    const int64_t m = n - at < kBlock ? n - at : kBlock;
    uint64_t bits = 0;
    for (int64_t i = 0; i < m; i++) bits |= uint64_t(from[i]) + below_zero;
    if (bits < below_zero + (1 << 24))
      for (int64_t i = 0; i < m; i++) some[i] = float(int32_t(from[i]));
    else
      for (int64_t i = 0; i < m; i++) some[i] = round_to_odd(double(from[i]));
    narrow_run<Narrow>(to + at, some, m);
  }
}
template <class S>
Loop long_to_half(Kind to) {
  return to == F16 ? long_to<S, Half> : long_to<S, Bfloat>;
}

void half_to_bool(char *out, char *const *in, int64_t n, const void *) {
  const uint16_t *from = reinterpret_cast<const uint16_t *>(in[0]);
  for (int64_t i = 0; i < n; i++) out[i] = (from[i] & 0x7fff) != 0;
}

template <class T>
void complex_bool(char *out, char *const *in, int64_t n, const void *) {
  const T *from = reinterpret_cast<const T *>(in[0]);
  for (int64_t i = 0; i < n; i++) out[i] = (from[2 * i] != T(0)) | (from[2 * i + 1] != T(0));
}

}  // namespace

namespace {

#define PLAIT_FLOAT8_LOOPS(name)                                                     \
  void name##_to_float(char *out, char *const *in, int64_t n, const void *) {        \
    float *to = reinterpret_cast<float *>(out);                                      \
    const uint8_t *from = reinterpret_cast<const uint8_t *>(in[0]);                  \
    for (int64_t i = 0; i < n; i++) to[i] = plait_float8_##name##_to_float(from[i]); \
  }                                                                                  \
  void float_to_##name(char *out, char *const *in, int64_t n, const void *) {        \
    uint8_t *to = reinterpret_cast<uint8_t *>(out);                                  \
    const float *from = reinterpret_cast<const float *>(in[0]);                      \
    for (int64_t i = 0; i < n; i++) to[i] = plait_float8_##name##_of_float(from[i]); \
  }
PLAIT_FLOAT8_LOOPS(e4m3fn)
PLAIT_FLOAT8_LOOPS(e4m3fnuz)
PLAIT_FLOAT8_LOOPS(e5m2)
PLAIT_FLOAT8_LOOPS(e5m2fnuz)
PLAIT_FLOAT8_LOOPS(e8m0fnu)

// In the order of the kinds; none for those that a build leaves out.
constexpr Loop kWiden8[] = {
    selects(F8E4M3) ? e4m3fn_to_float : nullptr, selects(F8E4M3Z) ? e4m3fnuz_to_float : nullptr,
    selects(F8E5M2) ? e5m2_to_float : nullptr, selects(F8E5M2Z) ? e5m2fnuz_to_float : nullptr,
    selects(F8E8M0) ? e8m0fnu_to_float : nullptr};
constexpr Loop kNarrow8[] = {
    selects(F8E4M3) ? float_to_e4m3fn : nullptr, selects(F8E4M3Z) ? float_to_e4m3fnuz : nullptr,
    selects(F8E5M2) ? float_to_e5m2 : nullptr, selects(F8E5M2Z) ? float_to_e5m2fnuz : nullptr,
    selects(F8E8M0) ? float_to_e8m0fnu : nullptr};

// At least one of the two is float8.
CastSteps float8_steps(Kind from, Kind to) {
  CastSteps s{nullptr, nullptr, size_of(from), size_of(to)};
  Loop *next = &s.first;
  if (is_float8(from))
    *next = kWiden8[from - F8E4M3], next = &s.second;
  else if (from != F32)
    s.first = cast_steps(from, F32).first, next = &s.second;  // one loop each
  if (is_float8(to))
    *next = kNarrow8[to - F8E4M3];
  else if (to != F32)
    *next = cast_steps(F32, to).first;
  return s;
}

}  // namespace

CastSteps cast_steps(Kind from, Kind to) {
  if (is_float8(from) || is_float8(to)) return float8_steps(from, to);
  const bool half_from = from == F16 || from == BF16, half_to = to == F16 || to == BF16;
  const Loop widen = from == F16 ? half_to_float : bfloat_to_float;
  const Loop narrow = to == F16 ? float_to_half : float_to_bfloat;
  const Loop narrow64 = to == F16 ? double_to<Half> : double_to<Bfloat>;
  CastSteps s{nullptr, nullptr, size_of(from), size_of(to)};
  if (half_from && to == Bool) {
    s.first = half_to_bool;
  } else if (half_from) {
    s.first = widen;
    if (to != F32) s.second = half_to ? narrow : kConvert[F32][to];
  } else if (!half_to) {
    s.first = kConvert[from][to];
  } else if (from == F32 || from == F64) {
    s.first = from == F32 ? narrow : narrow64;
  } else if (size_of(from) <= 2) {  // float32 has all of its numbers
    s.first = kConvert[from][F32];
    s.second = narrow;
  } else if (from == I64 || from == U64) {
    s.first = from == I64 ? long_to_half<int64_t>(to) : long_to_half<uint64_t>(to);
  } else {
    s.first = kConvert[from][F64];
    s.second = narrow64;
  }
  return s;
}

Loop complex_to_bool(Kind from) { return from == C64 ? complex_bool<float> : complex_bool<double>; }

void run_cast(char *out, char *const *in, int64_t n, const void *context) {
  const CastSteps &s = *static_cast<const CastSteps *>(context);
  if (!s.second) return s.first(out, in, n, nullptr);
  alignas(64) char buffer[kBlock * 8];
  char *middle = buffer;
  for (int64_t i = 0; i < n; i += kBlock) {
    const int64_t m = n - i < kBlock ? n - i : kBlock;
    char *from = in[0] + i * s.from;
    s.first(buffer, &from, m, nullptr);
    s.second(out + i * s.to, &middle, m, nullptr);
  }
}

}  // namespace plait::core
