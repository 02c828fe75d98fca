/* float16 and bfloat16 as bits: conversion to and from float32, to nearest with ties to even, in
 * integer arithmetic without branches, which compilers vectorise. Every component of plait rounds
 * this way, and gives the same bits as processors that have instructions for it. NaN keeps its sign
 * and as much of its payload as there is room for, and becomes quiet; bfloat16 to float32 changes
 * no bit. */
#ifndef PLAIT_HALF_H
#define PLAIT_HALF_H
#include <stdint.h>
#include <string.h>

/* always inlined, so that a caller that is compiled for more instructions uses them here too */
#define PLAIT_HALF_FUNCTION static inline __attribute__((always_inline, unused))

PLAIT_HALF_FUNCTION uint32_t plait_float_bits(float x) {
  uint32_t u;
  memcpy(&u, &x, sizeof u);
  return u;
}

PLAIT_HALF_FUNCTION float plait_float_of_bits(uint32_t u) {
  float x;
  memcpy(&x, &u, sizeof x);
  return x;
}

PLAIT_HALF_FUNCTION float plait_bfloat16_to_float(uint16_t b) {
  return plait_float_of_bits((uint32_t)b << 16);
}

PLAIT_HALF_FUNCTION uint16_t plait_bfloat16_of_float(float x) {
  const uint32_t u = plait_float_bits(x);
  const uint32_t rounded = (u + 0x7fff + ((u >> 16) & 1)) >> 16;
  return (uint16_t)(x != x ? (u >> 16) | 0x40 : rounded);
}

PLAIT_HALF_FUNCTION float plait_float16_to_float(uint16_t h) {
  const uint32_t sign = (uint32_t)(h & 0x8000) << 16, rest = (uint32_t)(h & 0x7fff) << 13;
  /* 2^112 moves the exponent's bias from 15 to 127 and makes subnormal numbers normal on the way */
  const uint32_t scaled = plait_float_bits(plait_float_of_bits(rest) * 0x1p112f);
  const uint32_t special = scaled | 0x7f800000u | (rest > 0x0f800000u ? 0x400000u : 0);
  return plait_float_of_bits(sign | (rest >= 0x0f800000u ? special : scaled));
}

PLAIT_HALF_FUNCTION uint16_t plait_float16_of_float(float x) {
  const uint32_t u = plait_float_bits(x), sign = (u >> 16) & 0x8000, rest = u & 0x7fffffff;
  const uint32_t normal = (rest + 0xfff + ((rest >> 13) & 1) - (112u << 23)) >> 13;
  /* 0.5 aligns the last bit of float32 with that of a subnormal result: the addition rounds */
  const uint32_t small = plait_float_bits(plait_float_of_bits(rest) + 0.5f) - 0x3f000000u;
  const uint32_t finite = rest < (113u << 23) ? small : normal;
  const uint32_t special = rest > 0x7f800000u ? 0x7e00 | ((rest >> 13) & 0x3ff) : 0x7c00;
  return (uint16_t)(sign | (rest >= 0x477ff000u ? special : finite));
}
#endif /* PLAIT_HALF_H */
