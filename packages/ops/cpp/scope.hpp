// Types for translated functions: the current call, lists of sizes and tensors, and access to
// plait_values.
#pragma once
#include <plait/plait.hpp>

#include <algorithm>
#include <cmath>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace plait::ops {

// The current call of words. `call` is null in derivatives, and `vjp` everywhere else. If
// `checking`, a shape function only validates, and the calls of a decomposition make the results.
struct Scope {
  plait_thread *thread;
  const plait_op *op;
  plait_call *call;
  bool checking = false;
  const plait_vjp *vjp = nullptr;
};
// Sets the thread's error and throws it.
[[noreturn]] void fail(const Scope &x, plait_status code, const std::string &text);

// Lists of sizes.

class Ints {  // borrowed
 public:
  Ints() = default;
  Ints(const int64_t *p, int64_t n) : p_(p), n_(n) {}
  Ints(const Dims &d) : p_(d.data()), n_(d.size()) {}
  explicit operator Dims() const;  // throws past 64
  int64_t size() const { return n_; }
  int64_t operator[](int64_t i) const { return p_[checked_index(i, n_)]; }
  const int64_t *data() const { return p_; }
  const int64_t *begin() const { return p_; }
  const int64_t *end() const { return p_ + n_; }

 private:
  const int64_t *p_ = nullptr;
  int64_t n_ = 0;
};

inline bool equal(Ints a, Ints b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin());
}
inline bool equal(const char *a, const char *b) { return std::strcmp(a, b) == 0; }
inline bool equal(DType a, DType b) { return same(a, b); }
inline bool contains(Ints a, int64_t value) {
  return std::find(a.begin(), a.end(), value) != a.end();
}
Dims concat(Ints a, Ints b);
Dims repeat(Ints a, int64_t times);
Dims part(Ints a, int64_t low, int64_t high);  // a[low:high] as Python has it
Dims backwards(Ints a);
Dims sorted(Ints a);
void insert(Dims &d, int64_t at, int64_t value);
void pop(Dims &d, int64_t at = -1);
// Integers.

// Python's integers have no bounds; here, integers that do not fit 64 bits are errors.
[[noreturn]] void too_large();
inline int64_t plus(int64_t a, int64_t b) {
  if (__builtin_add_overflow(a, b, &a)) too_large();
  return a;
}
inline int64_t minus(int64_t a, int64_t b) {
  if (__builtin_sub_overflow(a, b, &a)) too_large();
  return a;
}
inline int64_t times(int64_t a, int64_t b) {
  if (__builtin_mul_overflow(a, b, &a)) too_large();
  return a;
}
// Python's rounding
inline int64_t floor_div(int64_t a, int64_t b) {
  if (b == 0 || (b == -1 && a == INT64_MIN)) too_large();
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}
inline int64_t floor_mod(int64_t a, int64_t b) {
  if (b == 0) too_large();
  const int64_t rest = b == -1 ? 0 : a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

// Lists of tensors.

class Tensors {  // borrowed
 public:
  Tensors() = default;
  Tensors(plait_tensor *const *p, int64_t n) : p_(p), n_(n) {}
  int64_t size() const { return n_; }
  plait_tensor *operator[](int64_t i) const { return p_[checked_index(i, n_)]; }
  plait_tensor *const *data() const { return p_; }

 private:
  plait_tensor *const *p_ = nullptr;
  int64_t n_ = 0;
};

class Bag {  // owned
 public:
  static constexpr size_t kMost = size_t(1) << 22;  // limits the number of items
  Bag() = default;
  Bag(std::initializer_list<Tensor> list) {
    for (const Tensor &t : list) push(t);
  }
  explicit Bag(Tensors list) {
    for (int64_t i = 0; i < list.size(); i++) push(Tensor::share(list[i]));
  }
  Bag(const Bag &) = delete;
  Bag(Bag &&other) noexcept : list_(std::move(other.list_)) { other.list_.clear(); }
  Bag &operator=(Bag &&other) noexcept {
    list_.swap(other.list_);
    return *this;
  }
  ~Bag() {
    for (plait_tensor *t : list_) plait_release(t);
  }
  void push(Tensor t) {
    if (list_.size() == kMost) throw std::length_error("at most 4194304 parts can be made at once");
    list_.push_back(t.get());
    t.release();
  }
  int64_t size() const { return int64_t(list_.size()); }
  plait_tensor *operator[](int64_t i) const { return list_[size_t(checked_index(i, size()))]; }
  plait_tensor *take(int64_t i) { return std::exchange(list_[size_t(i)], nullptr); }
  Tensors span() const { return {list_.data(), size()}; }

 private:
  std::vector<plait_tensor *> list_;
};

std::string show(const plait_value &number);
// Reading values.

inline int64_t as_int(const plait_value &v) { return v.u.i; }
inline bool as_bool(const plait_value &v) { return v.u.i != 0; }
inline double as_float(const plait_value &v) {
  if (v.tag == PLAIT_COMPLEX)
    throw std::invalid_argument("a real number is required; got " + show(v));
  return v.tag == PLAIT_FLOAT ? v.u.f : double(v.u.i);
}
inline const char *as_str(const plait_value &v) { return v.tag == PLAIT_STRING ? v.u.s : nullptr; }
inline DType as_dtype(const plait_value &v) { return v.u.dtype; }
inline Ints as_ints(const plait_value &v) {
  return v.tag == PLAIT_INTS ? Ints(v.u.is, v.n) : Ints();
}
inline Tensors as_tensors(const plait_value &v) {
  return v.tag == PLAIT_TENSORS ? Tensors(v.u.ts, v.n) : Tensors();
}
inline plait_tensor *as_tensor(const plait_value &v) {
  return v.tag == PLAIT_TENSOR ? v.u.t : nullptr;
}
// The tensor of an operand that must be one.
inline plait_tensor *tensor_of(const plait_value &v) {
  if (v.tag != PLAIT_TENSOR) throw std::invalid_argument("a Tensor is required; got " + show(v));
  return v.u.t;
}
inline bool is_none(const plait_value &v) { return v.tag == PLAIT_NONE; }
inline bool is_none(const plait_tensor *t) { return !t; }
inline bool is_none(const Tensor &t) { return !t; }
inline bool is_none(const char *s) { return !s; }
template <class T>
bool is_none(const std::optional<T> &o) {
  return !o;
}
template <class T>
std::optional<T> maybe(const plait_value &v, T t) {
  return is_none(v) ? std::nullopt : std::optional<T>(t);
}
inline std::optional<int64_t> maybe_int(const plait_value &v) { return maybe(v, v.u.i); }
inline std::optional<double> maybe_float(const plait_value &v) { return maybe(v, as_float(v)); }
inline std::optional<DType> maybe_dtype(const plait_value &v) { return maybe(v, v.u.dtype); }
inline std::optional<Ints> maybe_ints(const plait_value &v) { return maybe(v, as_ints(v)); }

// Text for messages.

std::string show(Ints a);
std::string show(int64_t i);
std::string show(double f);
std::string show(bool b);
std::string show(const plait_value &number);
inline std::string show(const char *s) { return s; }
inline std::string show(DType d) { return name(d); }

}  // namespace plait::ops
