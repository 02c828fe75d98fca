// Philox4x32-10 (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3"): block `offset
// + b` of the stream that `seed` names, four words each. Blocks are computed side by side, so that
// the rounds vectorise.
#pragma once
#include "kernel/kernel.h"

namespace plait::core {

constexpr int kPhiloxBlocks = 32;  // computed at once

// Words of blocks [offset, offset + kPhiloxBlocks), block after block.
inline void philox(uint64_t seed, uint64_t offset, uint32_t *words) {
  constexpr uint32_t kM0 = 0xD2511F53u, kM1 = 0xCD9E8D57u, kW0 = 0x9E3779B9u, kW1 = 0xBB67AE85u;
  uint32_t a[kPhiloxBlocks], b[kPhiloxBlocks], x[kPhiloxBlocks], y[kPhiloxBlocks];
  for (int i = 0; i < kPhiloxBlocks; i++) {
    const uint64_t at = offset + uint64_t(i);
    a[i] = uint32_t(at), b[i] = uint32_t(at >> 32), x[i] = 0, y[i] = 0;
  }
  uint32_t k0 = uint32_t(seed), k1 = uint32_t(seed >> 32);
  for (int round = 0; round < 10; round++, k0 += kW0, k1 += kW1) {
    for (int i = 0; i < kPhiloxBlocks; i++) {
      const uint64_t p = uint64_t(kM0) * a[i], q = uint64_t(kM1) * x[i];
      a[i] = uint32_t(q >> 32) ^ b[i] ^ k0;
      x[i] = uint32_t(p >> 32) ^ y[i] ^ k1;
      b[i] = uint32_t(q);
      y[i] = uint32_t(p);
    }
  }
  for (int i = 0; i < kPhiloxBlocks; i++) {
    words[4 * i] = a[i];
    words[4 * i + 1] = b[i];
    words[4 * i + 2] = x[i];
    words[4 * i + 3] = y[i];
  }
}

// Block `turn` of a separate stream for each `offset`; `turn` counts from 1, as `philox` uses 0.
inline void philox_turn(uint64_t seed, uint64_t offset, uint32_t turn, uint32_t *words) {
  constexpr uint32_t kM0 = 0xD2511F53u, kM1 = 0xCD9E8D57u, kW0 = 0x9E3779B9u, kW1 = 0xBB67AE85u;
  uint32_t a = uint32_t(offset), b = uint32_t(offset >> 32), x = turn, y = 0;
  uint32_t k0 = uint32_t(seed), k1 = uint32_t(seed >> 32);
  for (int round = 0; round < 10; round++, k0 += kW0, k1 += kW1) {
    const uint64_t p = uint64_t(kM0) * a, q = uint64_t(kM1) * x;
    a = uint32_t(q >> 32) ^ b ^ k0;
    x = uint32_t(p >> 32) ^ y ^ k1;
    b = uint32_t(q);
    y = uint32_t(p);
  }
  words[0] = a, words[1] = b, words[2] = x, words[3] = y;
}

class Stream {  // a reserved part of a generator's stream
 public:
  Stream(const plait_call *c, int64_t blocks) {
    plait_generator *g = nullptr;
    for (int i = 0; i < c->n_in; i++)
      if (plait_arg_at(c->op, uint64_t(i))->kind == PLAIT_KIND_GENERATOR &&
          c->in[i].tag == PLAIT_OBJECT)
        g = reinterpret_cast<plait_generator *>(c->in[i].u.o);
    rng_ = PLAIT_ROLE(plait_rng, roles.rng);
    rng_->reserve(rng_->ctx, g, uint64_t(blocks), &seed_, &offset_);
  }
  // The words of blocks [first, first + kPhiloxBlocks) of this part.
  void words(int64_t first, uint32_t *words) const {
    if (PLAIT_LIKELY(!rng_->fill)) return philox(seed_, offset_ + uint64_t(first), words);
    rng_->fill(rng_->ctx, seed_, offset_ + uint64_t(first), 0, kPhiloxBlocks, words);
  }
  // Four further words of one block; `turn` counts from 1.
  void words_of_turn(int64_t block, uint32_t turn, uint32_t *words) const {
    if (PLAIT_LIKELY(!rng_->fill))
      return philox_turn(seed_, offset_ + uint64_t(block), turn, words);
    rng_->fill(rng_->ctx, seed_, offset_ + uint64_t(block), turn, 1, words);
  }

 private:
  const plait_rng *rng_;
  uint64_t seed_, offset_;
};

// The numbers of a rejection method for one element, which has a block of the stream.
class Draws {
 public:
  Draws(const Stream &stream, int64_t block) : stream_(stream), block_(block) {}
  double uniform() {  // (0, 1), 52 bits
    if (left_ == 0) {
      stream_.words_of_turn(block_, ++turn_, words_);
      left_ = 2;
    }
    left_--;
    const uint64_t bits = uint64_t(words_[2 * left_]) << 32 | words_[2 * left_ + 1];
    return (double(bits >> 12) + 0.5) * 0x1p-52;
  }

 private:
  const Stream &stream_;
  int64_t block_;
  uint32_t turn_ = 0, words_[4];
  int left_ = 0;
};

}  // namespace plait::core
