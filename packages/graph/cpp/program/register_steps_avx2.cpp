// Register code for processors with AVX2.
#if defined(__x86_64__)
#include <immintrin.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "program/register_code.hpp"

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2"))), apply_to = function)
#else
#pragma GCC target("avx2")
#endif
#define PLAIT_STEPS avx2_steps
#define PLAIT_VECTOR_BYTES 32
#include "program/register_steps.hpp"
#if defined(__clang__)
#pragma clang attribute pop
#endif
#endif
