// What a step costs: the type with which a rule counts its operations, and the bytes of lists.
#ifndef PLAIT_OPTIM_OPERATIONS_HPP
#define PLAIT_OPTIM_OPERATIONS_HPP
#include "lists.hpp"
#include "rules.hpp"

namespace plait::optim {

// Arithmetic on it is counted and does nothing else. Comparisons and selections do not count.
class Counted {
 public:
  Counted() = default;
  explicit Counted(double) {}

  Counted operator-() const { return one(); }
  Counted &operator+=(Counted) { return *this = one(); }
  Counted &operator-=(Counted) { return *this = one(); }
  friend Counted operator+(Counted, Counted) { return one(); }
  friend Counted operator-(Counted, Counted) { return one(); }
  friend Counted operator*(Counted, Counted) { return one(); }
  friend Counted operator/(Counted, Counted) { return one(); }
  friend bool operator>(Counted, Counted) { return false; }
  friend bool operator<(Counted, Counted) { return false; }
  friend Counted root(Counted) { return one(); }
  friend Counted magnitude(Counted) { return one(); }
  friend Counted larger(Counted, Counted) { return one(); }

  inline static thread_local uint64_t count = 0;

 private:
  static Counted one() {
    count++;
    return {};
  }
};

// Operations of a rule for one element.
template <class R>
uint64_t operations_of(const R &rule) {
  Counted p, a, b, c;
  Counted::count = 0;
  const Counted d = rule.template gradient<Counted>(rule.flags, Counted(), Counted(), p);
  rule.template element<Counted>(rule.flags, d, p, a, b, c);
  return Counted::count;
}

inline uint64_t bytes_of(const plait_tensor *t) {
  return uint64_t(numel(t)) * uint64_t(itemsize(t->dl.dtype));
}

// The bytes of a list of tensors; 0 of another value.
inline uint64_t bytes_of(const plait_value &list) {
  uint64_t bytes = 0;
  for (uint32_t i = 0; list.tag == PLAIT_TENSORS && i < list.n; i++)
    bytes += bytes_of(list.u.ts[i]);
  return bytes;
}

}  // namespace plait::optim
#endif  // PLAIT_OPTIM_OPERATIONS_HPP
