/* float8 as bits: conversion to and from float32. A float8 is stored and converted, and operators
 * do not compute with it. The kinds differ in what their bits mean:
 *
 *   kind      fraction  bias  largest  what is larger  NaN
 *   e4m3fn    3         7     448      448             0x7f and 0xff; there is no infinity
 *   e4m3fnuz  3         8     240      NaN             0x80; there is no infinity and no -0
 *   e5m2      2         15    57344    infinity        as IEEE 754 has it
 *   e5m2fnuz  2         16    57344    NaN             0x80; there is no infinity and no -0
 *   e8m0fnu   0         127   2^127    NaN             0xff; a power of two without sign, and no 0
 *
 * (OCP 8-bit Floating Point Specification, OCP Microscaling Formats; Noune et al. 2022 for fnuz.)
 * Rounding is to nearest with ties to even. The functions need no branches, and do not depend on
 * the mode of subnormal numbers. */
#ifndef PLAIT_FLOAT8_H
#define PLAIT_FLOAT8_H
#include "half.h"

/* The kinds with a sign: bits of the fraction, bias, the largest number, what is larger, and NaN.
 */
#define PLAIT_FLOAT8_KINDS(X)         \
  X(e4m3fn, 3, 7, 0x7e, 0x7e, 0x7f)   \
  X(e4m3fnuz, 3, 8, 0x7f, 0x80, 0x80) \
  X(e5m2, 2, 15, 0x7b, 0x7c, 0x7f)    \
  X(e5m2fnuz, 2, 16, 0x7f, 0x80, 0x80)

/* `x` without its sign, in a kind of `fraction` bits and a bias, where the exponent has no special
 * value. */
PLAIT_HALF_FUNCTION uint32_t plait_float8_finite_bits(uint32_t x, int fraction, int bias) {
  const uint32_t unit = (uint32_t)(127 - bias + 1 - fraction) << 23; /* the smallest number */
  const uint32_t small = plait_float_bits((float)(int32_t)x * plait_float_of_bits(unit));
  const uint32_t normal = (x << (23 - fraction)) + ((uint32_t)(127 - bias) << 23);
  return x >> fraction ? normal : small;
}

/* The rounded bits of a float32 without its sign; too large ones give more than 0x7f. */
PLAIT_HALF_FUNCTION uint32_t plait_float8_rounded(uint32_t rest, int fraction, int bias) {
  const int dropped = 23 - fraction;
  const uint32_t half = (1u << (dropped - 1)) - 1, least = (uint32_t)(127 - bias + 1) << 23;
  const uint32_t normal =
      (rest + half + ((rest >> dropped) & 1) - ((uint32_t)(127 - bias) << 23)) >> dropped;
  /* the last bit of `align` has the weight of the smallest number: the addition rounds */
  const uint32_t align = (uint32_t)(127 - bias + 1 + dropped) << 23;
  const uint32_t small =
      plait_float_bits(plait_float_of_bits(rest) + plait_float_of_bits(align)) - align;
  return rest < least ? small : normal;
}

#define PLAIT_FLOAT8_FUNCTIONS(kind, fraction, bias, largest, larger, nan)                  \
  PLAIT_HALF_FUNCTION float plait_float8_##kind##_to_float(uint8_t b) {                     \
    const uint32_t sign = (uint32_t)(b & 0x80) << 24, rest = b & 0x7f;                      \
    const uint32_t finite = plait_float8_finite_bits(rest, fraction, bias);                 \
    const uint32_t quiet = rest > 0x7c || (largest) == 0x7e ? 0x400000u : 0;                \
    const uint32_t special = 0x7f800000u | quiet | (rest << (23 - (fraction)));             \
    if ((nan) == 0x80) return plait_float_of_bits(b == 0x80 ? 0x7f800001u : sign | finite); \
    return plait_float_of_bits(sign | (rest > (largest) ? special : finite));               \
  }                                                                                         \
  PLAIT_HALF_FUNCTION uint8_t plait_float8_##kind##_of_float(float x) {                     \
    const uint32_t u = plait_float_bits(x), rest = u & 0x7fffffffu;                         \
    const uint32_t finite = plait_float8_rounded(rest, fraction, bias);                     \
    const uint32_t number = finite > (largest) ? (larger) : finite;                         \
    const uint32_t size = rest > 0x7f800000u ? (nan) : number;                              \
    const uint32_t sign = (nan) == 0x80 && (size & 0x7f) == 0 ? 0 : (u >> 24) & 0x80;       \
    return (uint8_t)(sign | size);                                                          \
  }
PLAIT_FLOAT8_KINDS(PLAIT_FLOAT8_FUNCTIONS)
#undef PLAIT_FLOAT8_FUNCTIONS

PLAIT_HALF_FUNCTION float plait_float8_e8m0fnu_to_float(uint8_t b) {
  const uint32_t u = b == 0 ? 0x00400000u : (uint32_t)b << 23;
  return plait_float_of_bits(b == 0xff ? 0x7f800001u : u);
}

/* The sign is dropped, and 0 becomes the smallest number. */
PLAIT_HALF_FUNCTION uint8_t plait_float8_e8m0fnu_of_float(float x) {
  const uint32_t rest = plait_float_bits(x) & 0x7fffffffu, exponent = rest >> 23;
  const uint32_t fraction = rest & 0x7fffff;
  const uint32_t up = fraction > 0x400000 || (fraction == 0x400000 && exponent > 0);
  return (uint8_t)(exponent == 0xff ? 0xff : exponent + up);
}
#endif /* PLAIT_FLOAT8_H */
