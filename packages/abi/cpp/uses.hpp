// Which tensors the running calls use (docs/design/0044). On a host without a global lock a thread
// could replace the memory of a tensor (`p.data = q`, `resize_`) while a call of another thread
// reads it. So calls count their tensors there, and the memory of a tensor that is in use by
// another thread is not replaced. Hosts with a global lock count nothing.
#pragma once
#include <plait/free_threads.h>

#include <vector>

#include "runtime.hpp"

namespace plait::abi {

extern uint64_t settings;
// The bit is tested as a sign bit. With `&`, the compiler reuses the result, which it knows to be
// 0, as the zero of later code, and stores it on the stack, which costs 10 ns in each call.
inline bool has_free_threads() {
  static_assert(PLAIT_SETTING_FREE_THREADS << 2 == uint64_t(1) << 63);
  const uint64_t now = __atomic_load_n(&settings, __ATOMIC_RELAXED);
  return __builtin_expect(int64_t(now << 2) < 0, 0);
}

// `TensorBlock::uses` holds the number of uses in its low bits and the number of forks of the
// process above them. In a child, tensors that the parent's threads used count as unused.
void begin_use(const plait_tensor *);
void end_use(const plait_tensor *) noexcept;

// The tensors of a call are in use while this lives.
class Uses {
 public:
  Uses(const plait_call *, Thread *);
  Uses(const Uses &) = delete;
  ~Uses();
  // How often this and the outer calls of the thread use a tensor.
  uint32_t of(const plait_tensor *) const;

 private:
  static constexpr uint32_t few = 8;
  void add(const plait_tensor *);
  const plait_tensor *const *begin() const { return n_ <= few ? room_ : more_.data(); }

  Thread *thread_;
  const Uses *outer_;
  uint32_t n_ = 0;
  const plait_tensor *room_[few];
  std::vector<const plait_tensor *> more_;  // all of them, once there are more
};

// One tensor is in use, on hosts without a global lock.
class Use {
 public:
  explicit Use(const plait_tensor *t) : tensor_(has_free_threads() ? t : nullptr) {
    if (tensor_) begin_use(tensor_);
  }
  Use(const Use &) = delete;
  ~Use() {
    if (tensor_) end_use(tensor_);
  }

 private:
  const plait_tensor *tensor_;
};

// While this lives, no other thread uses the tensor or begins to use it.
class Exclusive {
 public:
  explicit Exclusive(plait_tensor *);
  Exclusive(const Exclusive &) = delete;
  ~Exclusive();
  explicit operator bool() const { return granted_; }  // false: another thread uses it

 private:
  uint64_t *word_ = nullptr;  // NULL: the host has a global lock
  uint64_t before_ = 0;
  bool granted_ = true;
};

}  // namespace plait::abi
