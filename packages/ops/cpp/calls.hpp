// Operator calls from derivatives and decompositions: layers see them, so they can be
// differentiated again.
#pragma once
#include "operators.hpp"  // generated: enum class Op
#include "scope.hpp"

namespace plait::ops {

const plait_op *find(Op op);

// `spare`: bits of the inputs that are not read afterwards; the result may be written into one.
Tensor run(const Scope &x, Op op, std::initializer_list<plait_value> in, uint32_t spare = 0);
Tensor run_in_place(const Scope &x, Op op, std::initializer_list<plait_value> in);
Bag run_list(const Scope &x, Op op, std::initializer_list<plait_value> in);

class Results {  // of an operator with several results
 public:
  Results() = default;
  Results(const Results &) = delete;
  ~Results();
  void into(std::initializer_list<Tensor *> targets);
  plait_value *values() { return values_; }
  uint32_t n = 0;

 private:
  plait_value values_[PLAIT_MAX_RESULTS];
};
void run_all(const Scope &x, Op op, std::initializer_list<plait_value> in, Results &out);
struct Pending {  // made by run_all(x, op, {...}).into({&a, &b})
  const Scope &x;
  Op op;
  std::initializer_list<plait_value> in;
  void into(std::initializer_list<Tensor *> targets) const {
    Results r;
    run_all(x, op, in, r);
    r.into(targets);
  }
};
inline Pending run_all(const Scope &x, Op op, std::initializer_list<plait_value> in) {
  return {x, op, in};
}

const plait_value &standard(Op op, uint32_t i);  // the default of argument i
inline plait_value ints_value(Ints a) { return ints(a.data(), size_t(a.size())); }
inline plait_value tensors_value(Tensors a) { return tensors(a.data(), size_t(a.size())); }
template <class T>
plait_value value_or_none(const std::optional<T> &o) {
  return o ? value(*o) : none();
}
inline plait_value value_or_none(const char *s) { return s ? value(s) : none(); }
inline plait_value value_or_none(const std::optional<Ints> &o) {
  return o ? ints_value(*o) : none();
}

// Results of decompositions.

inline void give(const Scope &x, uint32_t i, Tensor t) {
  x.call->out[i] = value(t.get());
  t.release();
}
void give(const Scope &x, const Pending &call);
// Gives the result of a decomposition's last call. If the caller wants it in a target, the operator
// writes it there.
void give_last(const Scope &x, Op op, std::initializer_list<plait_value> in, uint32_t spare = 0);
void give_list(const Scope &x, uint32_t i, const Bag &list);

}  // namespace plait::ops
