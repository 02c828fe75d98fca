#include "calls.hpp"

#include "library.hpp"

namespace plait::ops {

const plait_op *find(Op op) { return operators()[size_t(op)]; }
const plait_value &standard(Op op, uint32_t i) { return plait_arg_at(find(op), i)->value; }

Tensor run(const Scope &x, Op op, std::initializer_list<plait_value> in) {
  plait_value out[PLAIT_MAX_RESULTS];
  call(x.thread, find(op), in.begin(), in.size(), out);
  return Tensor::steal(out[0].u.t);
}
Tensor run_in_place(const Scope &x, Op op, std::initializer_list<plait_value> in) {
  plait_value out[PLAIT_MAX_RESULTS];
  out[0] = *in.begin();
  call(x.thread, find(op), in.begin(), in.size(), out, PLAIT_INPLACE);
  return Tensor::share(out[0].u.t);
}
Bag run_list(const Scope &x, Op op, std::initializer_list<plait_value> in) {
  plait_value out[PLAIT_MAX_RESULTS];
  call(x.thread, find(op), in.begin(), in.size(), out);
  Bag list(as_tensors(out[0]));
  x.thread->runtime->release_value(out);
  return list;
}

Results::~Results() {
  for (uint32_t i = 0; i < n; i++)
    if (values_[i].tag == PLAIT_TENSOR) plait_release(values_[i].u.t);
}
void Results::into(std::initializer_list<Tensor *> targets) {
  uint32_t i = 0;
  for (Tensor *t : targets) {
    *t = Tensor::steal(values_[i].u.t);
    values_[i++] = none();
  }
}
void run_all(const Scope &x, Op op, std::initializer_list<plait_value> in, Results &out) {
  const plait_op *o = find(op);
  call(x.thread, o, in.begin(), in.size(), out.values());
  out.n = o->n_results;
}

void give(const Scope &x, const Pending &call) {
  Results r;
  run_all(x, call.op, call.in, r);
  for (uint32_t i = 0; i < r.n; i++) x.call->out[i] = std::exchange(r.values()[i], none());
}
void give_list(const Scope &x, uint32_t i, const Bag &list) {
  check(x.thread->runtime->tensors(x.thread, list.span().data(), uint32_t(list.size()),
                                   &x.call->out[i]));
}

}  // namespace plait::ops
