// Python numbers become elements of any dtype: the definition of `store_number`, which one unit of
// each library of kernels includes.
#pragma once
#include <plait/float8.h>

#include "kernel/half.h"
#include "kernel/kernel.h"

namespace plait::core {
namespace {

int64_t to_int(const plait_value &v) {
  if (v.tag != PLAIT_FLOAT && v.tag != PLAIT_COMPLEX) return v.u.i;
  const double f = v.tag == PLAIT_FLOAT ? v.u.f : v.u.fs[0];
  return f >= -9223372036854775808.0 && f < 9223372036854775808.0 ? int64_t(f) : INT64_MIN;
}

template <class T>
void put(void *to, T value) {
  memcpy(to, &value, sizeof value);
}

}  // namespace

void store_number(Kind k, const plait_value &v, void *to) {
  const double f = v.tag == PLAIT_FLOAT     ? v.u.f
                   : v.tag == PLAIT_COMPLEX ? v.u.fs[0]
                                            : double(v.u.i);
  const double imaginary = v.tag == PLAIT_COMPLEX ? v.u.fs[1] : 0;
  switch (k) {
    case F32: return put(to, float(f));
    case F64: return put(to, f);
    case I64:
    case U64: return put(to, to_int(v));
    case I32:
    case U32: return put(to, int32_t(to_int(v)));
    case I16:
    case U16: return put(to, int16_t(to_int(v)));
    case I8:
    case U8: return put(to, int8_t(to_int(v)));
    case Bool: return put(to, f != 0 || imaginary != 0);
    case F16: return put(to, plait_float16_of_float(round_to_odd(f)));
    case BF16: return put(to, plait_bfloat16_of_float(round_to_odd(f)));
    case F8E4M3: return put(to, plait_float8_e4m3fn_of_float(float(f)));
    case F8E4M3Z: return put(to, plait_float8_e4m3fnuz_of_float(float(f)));
    case F8E5M2: return put(to, plait_float8_e5m2_of_float(float(f)));
    case F8E5M2Z: return put(to, plait_float8_e5m2fnuz_of_float(float(f)));
    case F8E8M0: return put(to, plait_float8_e8m0fnu_of_float(float(f)));
    case C64: put(to, float(f)); return put(static_cast<char *>(to) + 4, float(imaginary));
    case C128: put(to, f); return put(static_cast<char *>(to) + 8, imaginary);
    default: return;
  }
}

}  // namespace plait::core
