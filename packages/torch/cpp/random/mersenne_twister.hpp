// PyTorch's generator of the CPU: MT19937 (Matsumoto and Nishimura 1998), with the normal number
// that the last draw left over, and its state as PyTorch writes it.
#pragma once
#include <plait/abi.h>

#include <cstdint>

namespace plait::pytorch {

class MersenneTwister {
 public:
  static constexpr int size = 624;

  explicit MersenneTwister(uint64_t seed) { begin(seed); }

  // Begins the sequence of a seed, whose low 32 bits count.
  void begin(uint64_t seed);

  uint32_t next() {
    if (used_ == size) twist();
    return temper(words_[used_++]);
  }
  uint64_t next_pair() {  // the first word is the high half
    const uint64_t high = next();
    return high << 32 | next();
  }
  // The next n words.
  void fill(uint32_t *out, int64_t n);

  // [0, 1), of 24 and of 53 bits
  float unit(float) { return float(next() & 0xffffff) * 0x1p-24f; }
  double unit(double) { return double(next_pair() & ((uint64_t(1) << 53) - 1)) * 0x1p-53; }

  // A standard normal number. Two are drawn at a time, by Box and Muller's transform; the second
  // one is kept for the next call.
  double normal();

  // The 5,056 bytes of torch.get_rng_state().
  static constexpr uint64_t state_size = 5056;
  void write(uint64_t seed, void *state) const;
  // Returns false, and changes nothing, if the bytes are no such state.
  bool read(const void *state, uint64_t *seed);

 private:
  static uint32_t temper(uint32_t y) {
    y ^= y >> 11;
    y ^= y << 7 & 0x9d2c5680u;
    y ^= y << 15 & 0xefc60000u;
    return y ^ y >> 18;
  }
  void twist();

  uint32_t words_[size];
  int used_ = size;
  bool is_fresh_ = true;  // no word was drawn since the seed
  bool has_normal_ = false;
  double normal_ = 0;
};

}  // namespace plait::pytorch
