#include "uses.hpp"

#include <plait/fork.hpp>

#include "frame.hpp"

namespace plait::abi {
namespace {

constexpr uint32_t exclusive = ~uint32_t(0);

uint64_t *word_of(const plait_tensor *t) {
  return &const_cast<TensorBlock *>(static_cast<const TensorBlock *>(t))->uses;
}
uint64_t generation() { return uint64_t(forks.number.load(std::memory_order_relaxed)) << 32; }
// The number of uses in this process.
uint32_t count_in(uint64_t word) { return word >> 32 == generation() >> 32 ? uint32_t(word) : 0; }
void pause_briefly(int tries) {
  if (tries < 1000) return;
  const timespec pause{0, 50000};
  nanosleep(&pause, nullptr);
}

}  // namespace

void begin_use(const plait_tensor *t) {
  uint64_t *word = word_of(t);
  for (int tries = 0;; tries++) {
    uint64_t seen = __atomic_load_n(word, __ATOMIC_RELAXED);
    const uint32_t count = count_in(seen);
    if (count == exclusive) {
      pause_briefly(tries);
    } else if (__atomic_compare_exchange_n(word, &seen, generation() | (count + 1), true,
                                           __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
      return;
    }
  }
}

void end_use(const plait_tensor *t) noexcept {
  uint64_t *word = word_of(t);
  uint64_t seen = __atomic_load_n(word, __ATOMIC_RELAXED);
  // 0: the use began before a fork
  while (count_in(seen) != 0 && !__atomic_compare_exchange_n(word, &seen, seen - 1, true,
                                                             __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
  }
}

Uses::Uses(const plait_call *c, Thread *thread) : thread_(thread), outer_(thread->uses) {
  const auto use = [this](const plait_tensor *t, const plait_value *) { add(t); };
  each_tensor(c->in, c->n_in, use);
  if (c->form != PLAIT_FUNCTION) each_tensor(c->out, c->n_out, use);
  thread->uses = this;
}

Uses::~Uses() {
  thread_->uses = outer_;
  for (uint32_t i = 0; i < n_; i++) end_use(begin()[i]);
}

void Uses::add(const plait_tensor *t) {
  if (n_ == few) more_.assign(room_, room_ + few);
  if (n_ >= few)
    more_.push_back(t);
  else
    room_[n_] = t;
  begin_use(t);
  n_++;
}

uint32_t Uses::of(const plait_tensor *t) const {
  uint32_t n = 0;
  for (const Uses *u = this; u; u = u->outer_)
    for (uint32_t i = 0; i < u->n_; i++) n += u->begin()[i] == t;
  return n;
}

Exclusive::Exclusive(plait_tensor *t) {
  if (!has_free_threads()) return;
  const Uses *mine = this_thread()->uses;
  const uint32_t own = mine ? mine->of(t) : 0;
  word_ = word_of(t);
  for (int tries = 0;; tries++) {
    before_ = __atomic_load_n(word_, __ATOMIC_RELAXED);
    const uint32_t count = count_in(before_);
    if (count == exclusive) {  // two threads replace its memory at the same time
      pause_briefly(tries);
      continue;
    }
    if (count > own) {
      granted_ = false;
      return;
    }
    before_ = generation() | count;
    uint64_t seen = __atomic_load_n(word_, __ATOMIC_RELAXED);
    if (count_in(seen) == count &&
        __atomic_compare_exchange_n(word_, &seen, generation() | exclusive, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_RELAXED))
      return;
  }
}

Exclusive::~Exclusive() {
  if (word_ && granted_) __atomic_store_n(word_, before_, __ATOMIC_RELEASE);
}

}  // namespace plait::abi
