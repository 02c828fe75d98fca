#include "calls.hpp"

#include <stdexcept>

#include "library.hpp"

namespace plait::ops {

const plait_op *find(Op op) {
  if (size_t(op) >= kOperators)  // an enumerator without a definition, in a build of some operators
    throw std::logic_error("an operator is called that this build does not have");
  return operators()[size_t(op)];
}
const plait_value &standard(Op op, uint32_t i) { return plait_arg_at(find(op), i)->value; }

namespace {

// Whether a call of `op` in this form is one that the operator itself would have.
bool has_target(const plait_op *op, std::initializer_list<plait_value> in, const plait_value &to) {
  if (to.tag != PLAIT_NONE || !to.u.t || (op->flags & PLAIT_OP_VIEW) || op->n_results != 1)
    return false;
  const plait_arg *result = plait_result_at(op, 0);
  if (result->kind != PLAIT_KIND_TENSOR || result->flags & (PLAIT_ARG_WRITES | PLAIT_ARG_ALIASES))
    return false;
  // in place, errors name the first argument, and the call is on its device
  return to.n == PLAIT_OUT || (in.size() && in.begin()->tag == PLAIT_TENSOR &&
                               same(in.begin()->u.t->dl.device, to.u.t->dl.device));
}

inline void call_sparing(const Scope &x, const plait_op *op, std::initializer_list<plait_value> in,
                         uint32_t spare, plait_value *out, uint32_t form) {
  plait_value full[PLAIT_MAX_ARGS];
  for (size_t i = 0; i < op->n_args; i++)
    full[i] = i < in.size() ? in.begin()[i] : plait_arg_at(op, i)->value;
  plait_call c{};
  c.size = sizeof c;
  c.n_in = op->n_args;
  c.n_out = op->n_results;
  c.op = op;
  c.in = full;
  c.out = out;
  c.thread = x.thread;
  c.form = form;
  c.reusable = spare;
  check(x.thread->runtime->call(&c));
}

}  // namespace

Tensor run(const Scope &x, Op op, std::initializer_list<plait_value> in, uint32_t spare) {
  plait_value out[PLAIT_MAX_RESULTS];
  out[0] = none();
  call_sparing(x, find(op), in, spare, out, PLAIT_FUNCTION);
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
void give_last(const Scope &x, Op op, std::initializer_list<plait_value> in, uint32_t spare) {
  const plait_op *o = find(op);
  plait_value &to = x.call->out[0];
  if (!has_target(o, in, to)) return give(x, 0, run(x, op, in, spare));
  plait_value out[PLAIT_MAX_RESULTS];
  out[0] = value(to.u.t);
  call_sparing(x, o, in, spare, out, to.n);
  plait_retain(out[0].u.t);
  to = out[0];
}
void give_list(const Scope &x, uint32_t i, const Bag &list) {
  check(x.thread->runtime->tensors(x.thread, list.span().data(), uint32_t(list.size()),
                                   &x.call->out[i]));
}

}  // namespace plait::ops
