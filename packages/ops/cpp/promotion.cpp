#include "promotion.hpp"

namespace plait::ops {
namespace {

bool promote_integers(DType a, DType b, DType *out) {
  if (a.code == b.code) {
    *out = a.bits > b.bits ? a : b;
    return true;
  }
  const DType u = a.code == kDLUInt ? a : b, s = a.code == kDLUInt ? b : a;
  if (s.bits > u.bits) {
    *out = s;
    return true;
  }
  *out = DType{kDLInt, uint8_t(2 * u.bits), 1};
  return u.bits < 64;
}

DType combine(DType higher, DType lower) {
  if (category(lower) <= category(higher)) return higher;
  if (category(lower) == Category::complex && category(higher) == Category::floating)
    return higher.bits == 64 ? dtype::complex128 : dtype::complex64;  // as wide as the floats were
  return lower;
}

const DLDataType *default_dtype_ = &dtype::float32;  // set once, while the library is loaded

}  // namespace

DType default_dtype() { return *default_dtype_; }
void take_default_dtype(const plait_runtime *runtime) { default_dtype_ = runtime->default_dtype; }

Group group_of(const char *name) {
  static constexpr struct {
    const char *name;
    Group group;
  } names[] = {
      {"any", Group::any},           {"all", Group::all},         {"arithmetic", Group::arithmetic},
      {"numeric", Group::numeric},   {"inexact", Group::inexact}, {"floating", Group::floating},
      {"integral", Group::integral}, {"integer", Group::integer}};
  for (const auto &each : names)
    if (!std::strcmp(each.name, name)) return each.group;
  return Group::boolean;
}

std::string not_in_group(DType d, Group g) {
  const std::string n = std::string(name(d)) +
                        (is_float8(d) ? ", which is stored, not computed with: convert it before, "
                                        "as with x.float() or x.bfloat16()"
                                      : "");
  switch (g) {
    case Group::arithmetic: return "must be an integer, floating-point or complex dtype; got " + n;
    case Group::numeric: return "must be an integer or floating-point dtype; got " + n;
    case Group::inexact: return "must be a floating-point or complex dtype; got " + n;
    case Group::floating: return "must be a floating-point dtype; got " + n;
    case Group::integral: return "must be an integer dtype or bool; got " + n;
    case Group::integer: return "must be an integer dtype; got " + n;
    case Group::boolean: return "must be bool; got " + n;
    default: return "must be a real number: bool, an integer or floating-point dtype; got " + n;
  }
}

DType real_dtype(DType d) {
  if (d.code != kDLComplex) return d;
  return d.bits == 128 ? dtype::float64 : dtype::float32;
}
DType complex_dtype(DType d) {
  return same(d, dtype::float64) || same(d, dtype::complex128) ? dtype::complex128
                                                               : dtype::complex64;
}
DType wide_dtype(DType d) {
  return same(d, dtype::float16) || same(d, dtype::bfloat16) ? dtype::float32 : d;
}

DType number_dtype(const plait_value &number) {
  switch (number.tag) {
    case PLAIT_BOOL: return dtype::bool_;
    case PLAIT_INT: return dtype::int64;
    case PLAIT_COMPLEX:
      return same(default_dtype(), dtype::float64) ? dtype::complex128 : dtype::complex64;
    default: return default_dtype();
  }
}

bool promote_types(DType a, DType b, DType *out) {
  if (category(a) > category(b)) std::swap(a, b);
  *out = b;
  if (!same(a, b) && (is_float8(a) || is_float8(b))) return false;
  if (same(a, b) || category(a) == Category::boolean) return true;
  switch (category(b)) {
    case Category::integer: return promote_integers(a, b, out);
    case Category::complex: {  // twice the bits of what both parts need
      const int part = category(a) == Category::complex    ? a.bits / 2
                       : category(a) == Category::floating ? a.bits
                                                           : 0;
      *out = std::max<int>(part, b.bits / 2) > 32 ? dtype::complex128 : dtype::complex64;
      return true;
    }
    default:
      if (category(a) == Category::integer) return true;
      *out = a.bits == b.bits ? dtype::float32 : a.bits > b.bits ? a : b;  // float16 and bfloat16
      return true;
  }
}

void Promotion::join(int level, DType d) {
  if (!has_[level]) {
    has_[level] = true;
    level_[level] = d;
  } else if (!same(level_[level], d)) {
    const DType before = level_[level];
    if (promote_types(before, d, &level_[level]) || conflict_) return;
    conflict_ = true;
    a_ = before;
    b_ = d;
  }
}

std::string Promotion::why() const {
  if (is_float8(a_) || is_float8(b_))
    return std::string(name(a_)) + " and " + name(b_) +
           " have no common dtype: float8 is not promoted; convert it before, as with x.float() or "
           "x.bfloat16()";
  const DType u = a_.code == kDLUInt ? a_ : b_, s = a_.code == kDLUInt ? b_ : a_;
  return std::string(name(u)) + " and " + name(s) +
         " have no common integer dtype; cast one of them";
}

DType Promotion::result() const {
  DType out{};
  bool any = false;
  for (int level = 2; level >= 0; level--) {
    if (!has_[level]) continue;
    out = any ? combine(level_[level], out) : level_[level];
    any = true;
  }
  return out;
}

}  // namespace plait::ops
