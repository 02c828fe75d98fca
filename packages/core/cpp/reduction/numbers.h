// The elements of a tensor as numbers of T, of any T: halves are float (Elements<float>), all
// others lie in memory as they are.
#ifndef PLAIT_CORE_NUMBERS_H
#define PLAIT_CORE_NUMBERS_H
#include <type_traits>

#include "kernel/half.h"
#include "kernel/integers.h"

namespace plait::core {

template <class T>
class PlainNumbers {  // as Elements<float>
 public:
  PlainNumbers() = default;
  explicit PlainNumbers(const DLTensor *t) : data_(data<T>(t)) {}
  static constexpr bool widens() { return false; }
  const T *read(int64_t at, int64_t, T *) const { return data_ + at; }
  T *place(int64_t at, T *) const { return data_ + at; }
  void round(int64_t, int64_t, const T *) const {}
  void get(int64_t at, int64_t step, int64_t n, T *to) const {
    for (int64_t i = 0; i < n; i++) to[i] = data_[at + i * step];
  }
  void put(int64_t at, int64_t step, int64_t n, const T *from) const {
    for (int64_t i = 0; i < n; i++) data_[at + i * step] = from[i];
  }

 private:
  T *data_ = nullptr;
};
template <class T>
using Numbers = std::conditional_t<std::is_same_v<T, float>, Elements<float>, PlainNumbers<T> >;

// Calls f(from, to, n) for the elements [at, at + n) of an input and of a result: once where they
// lie, or for one block after the other that is widened and rounded.
template <class T, class F>
PLAIT_INLINE void each_block(const Numbers<T> &from, const Numbers<T> &to, int64_t at, int64_t n,
                             F &&f) {
  constexpr int64_t kBlock = 1024;
  if (!from.widens()) return f(from.read(at, n, nullptr), to.place(at, nullptr), n);
  T some[kBlock];
  for (int64_t i = 0; i < n; i += kBlock) {
    const int64_t m = least(kBlock, n - i);
    f(from.read(at + i, m, some), some, m);
    to.round(at + i, m, some);
  }
}

}  // namespace plait::core
#endif  // PLAIT_CORE_NUMBERS_H
