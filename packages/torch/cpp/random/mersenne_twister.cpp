#include "random/mersenne_twister.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>

namespace plait::pytorch {

namespace {

// What torch.get_rng_state() returns, field by field.
struct State {
  uint64_t seed;
  int32_t left;  // words of the block that are left, and one more; 1 after a seed
  int32_t is_seeded;
  uint64_t next;  // index of the next word
  uint64_t words[MersenneTwister::size];
  double unused_x, normal, radius;  // of the normal number that is left over
  int32_t has_normal;
  int32_t unused_end;
  float float_normal;  // not in use by PyTorch's operators
  bool has_float_normal;
};
static_assert(sizeof(State) == MersenneTwister::state_size, "5,056 bytes");

}  // namespace

void MersenneTwister::begin(uint64_t seed) {
  words_[0] = uint32_t(seed);
  for (uint32_t i = 1; i < uint32_t(size); i++)
    words_[i] = 1812433253u * (words_[i - 1] ^ words_[i - 1] >> 30) + i;
  used_ = size;
  is_fresh_ = true;
  has_normal_ = false;
}

void MersenneTwister::twist() {
  constexpr int shift = 397;
  const auto mixed = [this](int i, int next, int other) {
    const uint32_t y = (words_[i] & 0x80000000u) | (words_[next] & 0x7fffffffu);
    return words_[other] ^ y >> 1 ^ ((y & 1) ? 0x9908b0dfu : 0u);
  };
  for (int i = 0; i < size - shift; i++) words_[i] = mixed(i, i + 1, i + shift);
  for (int i = size - shift; i < size - 1; i++) words_[i] = mixed(i, i + 1, i + shift - size);
  words_[size - 1] = mixed(size - 1, 0, shift - 1);
  used_ = 0;
  is_fresh_ = false;
}

void MersenneTwister::fill(uint32_t *out, int64_t n) {
  while (n > 0) {
    if (used_ == size) twist();
    const int count = int(std::min<int64_t>(n, size - used_));
    for (int i = 0; i < count; i++) out[i] = temper(words_[used_ + i]);
    used_ += count, out += count, n -= count;
  }
}

double MersenneTwister::normal() {
  if (has_normal_) {
    has_normal_ = false;
    return normal_;
  }
  const double angle = 2 * 3.14159265358979323846 * unit(double());
  const double radius = std::sqrt(-2 * std::log1p(-unit(double())));
  normal_ = radius * std::sin(angle);
  has_normal_ = true;
  return radius * std::cos(angle);
}

void MersenneTwister::write(uint64_t seed, void *state) const {
  State s;
  std::memset(&s, 0, sizeof s);
  s.seed = seed;
  s.left = is_fresh_ ? 1 : size + 1 - used_;
  s.is_seeded = 1;
  s.next = is_fresh_ ? 0 : uint64_t(used_);
  std::copy(words_, words_ + size, s.words);
  s.normal = has_normal_ ? normal_ : 0;
  s.has_normal = has_normal_;
  std::memcpy(state, &s, sizeof s);
}

bool MersenneTwister::read(const void *state, uint64_t *seed) {
  State s;
  std::memcpy(&s, state, offsetof(State, has_float_normal));
  const bool fresh = s.left == 1 && s.next == 0;
  if (s.is_seeded != 1 || s.left < 1 || s.left > size || s.next > uint64_t(size) ||
      (!fresh && uint64_t(s.left) + s.next != uint64_t(size) + 1) || uint32_t(s.has_normal) > 1)
    return false;
  for (const uint64_t word : s.words)
    if (word >> 32) return false;
  for (int i = 0; i < size; i++) words_[i] = uint32_t(s.words[i]);
  used_ = fresh ? size : int(s.next);
  is_fresh_ = fresh;
  has_normal_ = s.has_normal != 0;
  normal_ = s.normal;
  *seed = s.seed;
  return true;
}

}  // namespace plait::pytorch
