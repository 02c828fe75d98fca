/* A plug-in that brings another random generator: SplitMix64 (Steele, Lea and Flood 2014, "Fast
 * splittable pseudorandom number generators") in place of Philox. All random operators draw from
 * it, and stay reproducible: each block of words depends on the seed and its position alone.
 *
 *   cc -std=c11 -O2 -shared -fPIC -I<headers> generator.c -o generator.so */
#include <plait/abi.h>

__attribute__((visibility("default"))) uint64_t example_generator_blocks = 0;

static plait_rng rng;
static const plait_rng *before; /* keeps the default generator and hands out positions */

static void reserve(void *ctx, plait_generator *generator, uint64_t blocks, uint64_t *seed,
                    uint64_t *offset) {
  (void)ctx;
  before->reserve(before->ctx, generator, blocks, seed, offset);
}

static plait_generator *default_generator(void *ctx) {
  (void)ctx;
  return before->default_generator(before->ctx);
}

static uint64_t mixed(uint64_t z) {
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
  z = (z ^ z >> 27) * 0x94D049BB133111EBu;
  return z ^ z >> 31;
}

/* Block b of turn t has the states 2 b and 2 b + 1 of the sequence that starts at the mixed seed.
 */
static void fill(void *ctx, uint64_t seed, uint64_t offset, uint32_t turn, uint64_t blocks,
                 uint32_t *words) {
  (void)ctx;
  const uint64_t gamma = 0x9E3779B97F4A7C15u, start = mixed(seed + gamma * (turn + 1));
  for (uint64_t i = 0; i < 2 * blocks; i++) {
    const uint64_t bits = mixed(start + gamma * (2 * offset + i + 1));
    words[2 * i] = (uint32_t)bits;
    words[2 * i + 1] = (uint32_t)(bits >> 32);
  }
  __atomic_fetch_add(&example_generator_blocks, blocks, __ATOMIC_RELAXED);
}

static plait_status init(const plait_runtime *runtime, const plait_plugin *self) {
  before = PLAIT_ROLE(plait_rng, runtime->role("rng", 0));
  rng = (plait_rng){.h = PLAIT_HEADER(plait_rng),
                    .name = "SplitMix64",
                    .reserve = reserve,
                    .default_generator = default_generator,
                    .fill = fill};
  return runtime->provide(runtime->thread(), "rng", 0, &rng.h, self, NULL);
}

__attribute__((visibility("default"))) const plait_plugin plait_plugin_v1 = {
    PLAIT_HEADER(plait_plugin), "example-generator", "1.0", 0, init, NULL};
