// Compiled with contraction of products and sums, which the polynomials below need to give
// PyTorch's bits. They and their constants are those of Cephes (Moshier 1992), eight lanes at a
// time.
#include "random/normal_lanes.hpp"

#include <cmath>
#include <cstdint>
#include <cstring>

namespace plait::pytorch {

void normal_16(float *u, float mean, float deviation) {
  for (int i = 0; i < 8; i++) {
    const float radius = std::sqrt(-2.0f * std::log(1.0f - u[i]));
    const float angle = 2.0f * 3.14159265358979323846f * u[i + 8];
    u[i] = radius * std::cos(angle) * deviation + mean;
    u[i + 8] = radius * std::sin(angle) * deviation + mean;
  }
}

#if defined(__x86_64__)
namespace {

using Lanes = float __attribute__((vector_size(32)));
using Words = int32_t __attribute__((vector_size(32)));

#define PLAIT_LANES __attribute__((target("avx2,fma"), always_inline)) inline

PLAIT_LANES Words bits(Lanes x) { return reinterpret_cast<Words>(x); }
PLAIT_LANES Lanes of_bits(Words x) { return reinterpret_cast<Lanes>(x); }
PLAIT_LANES Lanes to_float(Words x) { return __builtin_convertvector(x, Lanes); }
PLAIT_LANES Lanes all(float x) { return Lanes{x, x, x, x, x, x, x, x}; }

// The logarithm of numbers in (0, 1].
PLAIT_LANES Lanes log_of(Lanes x) {
  Lanes e = to_float((bits(x) >> 23) - 127) + 1.0f;
  x = of_bits((bits(x) & ~0x7f800000) | bits(all(0.5f)));  // [0.5, 1)
  const Words is_small = x < all(0.707106781186547524f);
  const Lanes again = of_bits(bits(x) & is_small);
  x = x - 1.0f;
  e = e - of_bits(bits(all(1.0f)) & is_small);
  x = x + again;
  const Lanes z = x * x;
  constexpr float p[] = {7.0376836292E-2f,  -1.1514610310E-1f, 1.1676998740E-1f,
                         -1.2420140846E-1f, 1.4249322787E-1f,  -1.6668057665E-1f,
                         2.0000714765E-1f,  -2.4999993993E-1f, 3.3333331174E-1f};
  Lanes y = all(p[0]);
  for (int i = 1; i < 9; i++) y = y * x + p[i];
  y = y * x;
  y = y * z;
  y = y + e * -2.12194440e-4f;
  y = y - z * 0.5f;
  x = x + y;
  return x + e * 0.693359375f;
}

struct SineCosine {
  Lanes sine, cosine;
};

// Of angles that are not negative.
PLAIT_LANES SineCosine sine_cosine(Lanes x) {
  Words octant = __builtin_convertvector(x * 1.27323954473516f, Words);
  octant = (octant + 1) & ~1;
  const Lanes y = to_float(octant);
  x = x + y * -0.78515625f;
  x = x + y * -2.4187564849853515625e-4f;
  x = x + y * -3.77489497744594108e-8f;
  const Words sine_sign = (octant & 4) << 29, cosine_sign = (~(octant - 2) & 4) << 29;
  const Words is_direct = (octant & 2) == 0;
  const Lanes z = x * x;
  Lanes c = all(2.443315711809948E-005f);
  c = c * z + -1.388731625493765E-003f;
  c = c * z + 4.166664568298827E-002f;
  c = c * z;
  c = c * z;
  c = c - z * 0.5f;
  c = c + 1.0f;
  Lanes s = all(-1.9515295891E-4f);
  s = s * z + 8.3321608736E-3f;
  s = s * z + -1.6666654611E-1f;
  s = s * z;
  s = s * x;
  s = s + x;
  const Words sine = (bits(s) & is_direct) | (bits(c) & ~is_direct);
  const Words cosine = (bits(c) & is_direct) | (bits(s) & ~is_direct);
  return {of_bits(sine ^ sine_sign), of_bits(cosine ^ cosine_sign)};
}

PLAIT_LANES Lanes root(Lanes x) { return __builtin_ia32_sqrtps256(x); }

}  // namespace

bool has_normal_lanes() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }

__attribute__((target("avx2,fma"))) void normal_16_lanes(float *u, float mean, float deviation) {
  Lanes first, second;
  std::memcpy(&first, u, sizeof first);
  std::memcpy(&second, u + 8, sizeof second);
  const Lanes radius = root(-2.0f * log_of(1.0f - first));
  const SineCosine turn = sine_cosine(second * (2.0f * 3.14159265358979323846f));
  const Lanes x = radius * turn.cosine, y = radius * turn.sine;
  first = x * deviation + mean;
  second = y * deviation + mean;
  std::memcpy(u, &first, sizeof first);
  std::memcpy(u + 8, &second, sizeof second);
}
#else
bool has_normal_lanes() { return false; }
void normal_16_lanes(float *u, float mean, float deviation) { normal_16(u, mean, deviation); }
#endif

}  // namespace plait::pytorch
