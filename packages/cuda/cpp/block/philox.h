// Philox4x32-10 (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3"), with the
// numbers that the CPU's kernels draw: element i of a tensor, in C order, depends on the stream's
// position and on i alone.
#pragma once
#include "block/block.h"

namespace plait::cuda {

// A reserved part of a generator's stream. In a graph `base` is memory of the device: what is added
// to the offset in this run, and the seed. Else it is NULL.
struct RandomStream {
  uint64_t seed, offset;
  const uint64_t *base;
};
struct RandomWords {
  uint32_t at[4];
};

// Block `block` of the stream; `turn` counts the further draws from it.
PLAIT_HD RandomWords philox(uint64_t seed, uint64_t block, uint32_t turn) {
  constexpr uint32_t kM0 = 0xD2511F53u, kM1 = 0xCD9E8D57u, kW0 = 0x9E3779B9u, kW1 = 0xBB67AE85u;
  uint32_t a = uint32_t(block), b = uint32_t(block >> 32), x = turn, y = 0;
  uint32_t k0 = uint32_t(seed), k1 = uint32_t(seed >> 32);
  for (int round = 0; round < 10; round++, k0 += kW0, k1 += kW1) {
    const uint64_t p = uint64_t(kM0) * a, q = uint64_t(kM1) * x;
    a = uint32_t(q >> 32) ^ b ^ k0;
    x = uint32_t(p >> 32) ^ y ^ k1;
    b = uint32_t(q);
    y = uint32_t(p);
  }
  return {{a, b, x, y}};
}

PLAIT_HD uint64_t long_word(const RandomWords &w, int i) {
  return uint64_t(w.at[2 * i]) << 32 | w.at[2 * i + 1];
}

// Number i of a block: from one word each (float32), or from two. [0, 1):
PLAIT_HD float unit(const RandomWords &w, int i, float) { return float(w.at[i] >> 8) * 0x1p-24f; }
PLAIT_HD double unit(const RandomWords &w, int i, double) {
  return double(long_word(w, i) >> 11) * 0x1p-53;
}
// (0, 1):
PLAIT_HD float open_unit(const RandomWords &w, int i, float) {
  return (float(w.at[i] >> 9) + 0.5f) * 0x1p-23f;
}
PLAIT_HD double open_unit(const RandomWords &w, int i, double) {
  return (double(long_word(w, i) >> 12) + 0.5) * 0x1p-52;
}
// [0, range): the high half of 64 bits times range
PLAIT_HD uint64_t below(const RandomWords &w, int i, uint64_t range) {
#if defined(__CUDA_ARCH__)
  return __umul64hi(long_word(w, i), range);
#else
  return uint64_t((unsigned __int128)(long_word(w, i)) * range >> 64);
#endif
}
// The number that a random word is below with probability p.
PLAIT_HD uint64_t threshold(double p) {
  return p >= 1 ? uint64_t(1) << 32 : p > 0 ? uint64_t(p * 0x1p32) : 0;
}

// Sums and products that are rounded one by one, as on the CPU.
PLAIT_HD float scaled(float low, float x, float width) {
#if defined(__CUDA_ARCH__)
  return __fadd_rn(low, __fmul_rn(x, width));
#else
  return low + x * width;
#endif
}
PLAIT_HD double scaled(double low, double x, double width) {
#if defined(__CUDA_ARCH__)
  return __dadd_rn(low, __dmul_rn(x, width));
#else
  return low + x * width;
#endif
}

// The numbers of a rejection method for one element, which has a block of the stream.
class Draws {
 public:
  PLAIT_HD Draws(uint64_t seed, uint64_t block) : seed_(seed), block_(block) {}
  PLAIT_HD double uniform() {  // (0, 1)
    if (left_ == 0) {
      words_ = philox(seed_, block_, ++turn_);
      left_ = 2;
    }
    return open_unit(words_, --left_, double());
  }

 private:
  uint64_t seed_, block_;
  uint32_t turn_ = 0;
  RandomWords words_{};
  int left_ = 0;
};
// Its number k alone.
PLAIT_HD double uniform_draw(uint64_t seed, uint64_t block, int64_t k) {
  return open_unit(philox(seed, block, uint32_t(k / 2 + 1)), int(1 - k % 2), double());
}

#if PLAIT_KERNELS
// The part in this run.
PLAIT_DEVICE RandomStream stream_of_run(Thread &t, RandomStream s) {
  if (!s.base) return s;
  const auto base = t.global<const uint64_t>(s.base);
  s.offset += base.load(0);
  s.seed = base.load(1);
  return s;
}
#endif

}  // namespace plait::cuda
