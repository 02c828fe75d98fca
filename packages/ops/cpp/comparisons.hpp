// Comparisons of sizes in translated decompositions and derivatives, of which a recorder is told.
#pragma once
#include <atomic>

#include "scope.hpp"

namespace plait::ops {

// 0 to 5: a == b, !=, <, <=, >, >=; 6 and 7: a % b and a / b is compared, rounded down.
using ComparisonObserver = void (*)(int32_t relation, int64_t a, int64_t b);
extern std::atomic<ComparisonObserver> comparison_observer;  // null: nobody is told

inline void tell(int32_t relation, int64_t a, int64_t b) {
  const ComparisonObserver observer = comparison_observer.load(std::memory_order_acquire);
  if (__builtin_expect(observer != nullptr, 0)) observer(relation, a, b);
}

inline bool is_equal(int64_t a, int64_t b) { return tell(0, a, b), a == b; }
inline bool is_different(int64_t a, int64_t b) { return tell(1, a, b), a != b; }
inline bool is_less(int64_t a, int64_t b) { return tell(2, a, b), a < b; }
inline bool is_at_most(int64_t a, int64_t b) { return tell(3, a, b), a <= b; }
inline bool is_greater(int64_t a, int64_t b) { return tell(4, a, b), a > b; }
inline bool is_at_least(int64_t a, int64_t b) { return tell(5, a, b), a >= b; }
inline int64_t told_rest(int64_t a, int64_t b) { return tell(6, a, b), floor_mod(a, b); }
inline int64_t told_quotient(int64_t a, int64_t b) { return tell(7, a, b), floor_div(a, b); }
inline int64_t smaller(int64_t a, int64_t b) { return is_less(a, b) ? a : b; }
inline int64_t larger(int64_t a, int64_t b) { return is_less(a, b) ? b : a; }
inline bool are_equal(Ints a, Ints b) {
  bool are = a.size() == b.size();
  for (int64_t i = 0; are && i < a.size(); i++) are = is_equal(a[i], b[i]);
  return are;
}

}  // namespace plait::ops
