// An operator from a rule: the kernel for the CPU, a loop over the rule's elements, and the
// decomposition, the same rule on arrays. A `Spec` has the properties of one:
//   Rule      of rules.hpp
//   n_lists   the leading Tensor[] arguments: params, grads, then the state
//   optional  bits of those that may be empty
//   counted   whether `steps` follows the lists in the schema, and `grad_scale` ends it
//   own       whether rules of parameters with the same step number may differ
//   check     checks the numbers; PLAIT_OK or an error
//   rule      makes the rule of parameter i, whose step number is t
// and, where step numbers may be a tensor (`counts` in the schema, which `count_steps` returns):
//   on_device  the place of that argument
//   RuleOf<N>  the rule with numbers of type N; `each_number(f)` calls f for each of them
//   rule_of<N>(in, t)  makes it from a step number, an Array of float64 for N = Array
// All lists but grads are written.
#ifndef PLAIT_OPTIM_ELEMENTWISE_HPP
#define PLAIT_OPTIM_ELEMENTWISE_HPP
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "blocks.hpp"
#include "decomposition.hpp"
#include "operations.hpp"
#include "steps.hpp"
#include "walk.hpp"

// Paragraphs of the documentation of all operators.
#define PLAIT_DOC_GRADIENT                                                                    \
  "With gradient g (negated with `maximize`, times `grad_scale`) and step number t (from 1; " \
  "`steps` holds one for each parameter or one for all; `grad_scale` may be a 0-d tensor):\n"
#define PLAIT_DOC_COUNTS                                                                        \
  "`counts`, float64 of shape (parameters,) on their device, has the step numbers in place of " \
  "`steps`, which is empty then: see `count_steps`.\n"
#define PLAIT_DOC_DTYPES                                                                    \
  "float32, float64, float16 and bfloat16, the last two computed in float32; any strides. " \
  "Nothing is written if anything is wrong with an argument.\n"

namespace plait::optim {

// The place of `counts` in the schema; 0: there is none.
template <class Spec, class = void>
constexpr int counts_of = 0;
template <class Spec>
constexpr int counts_of<Spec, std::void_t<decltype(Spec::on_device)>> = Spec::on_device;

template <class Spec>
plait_tensor *step_counts(const plait_value *in) {
  const int at = counts_of<Spec>;
  return at && in[at].tag == PLAIT_TENSOR ? in[at].u.t : nullptr;
}

// The step number of parameter i; 0: the rule does not depend on it.
template <class Spec>
int64_t step_number(const plait_value *in, uint32_t i) {
  if (!Spec::counted) return 0;
  if (const plait_tensor *counts = step_counts<Spec>(in)) {
    double t = 0;
    gather(counts, false, i, 1, &t);
    return int64_t(t);
  }
  const plait_value &steps = in[Spec::n_lists];
  return steps.u.is[steps.n == 1 ? 0 : i];
}

// The rules of all parameters, until the next call.
template <class Spec>
const std::vector<typename Spec::Rule> &rules_of(const Lists &l, const plait_value *in) {
  using R = typename Spec::Rule;
  std::vector<R> &rules = scratch<R>();
  rules.reserve(l.length);
  int64_t before = 0;
  for (uint32_t i = 0; i < l.length; i++) {
    const int64_t t = step_number<Spec>(in, i);
    // powers of t take most of the time of a small step
    if (i > 0 && !Spec::own && t == before) {
      rules.push_back(rules.back());
      continue;
    }
    R r = Spec::rule(in, i, t);
    if (r.l2 != 0) r.flags |= Rule::decays;
    rules.push_back(r);
    before = t;
  }
  return rules;
}

template <class Spec>
struct ElementwiseUpdate final : Update {
  using R = typename Spec::Rule;
  ElementwiseUpdate(const Lists &l, const plait_value *in)
      : Update(l), rules(rules_of<Spec>(l, in)) {
    written = ~(1u << 1);
  }
  void apply(uint32_t i, void *const *data, int64_t n) const override {
    loops().template of<R>(is_wide(lists.at(0, i)->dl.dtype))(rules[i], data, n);
  }
  const std::vector<R> &rules;
};

template <class Spec>
plait_status elementwise_shape(plait_call *call) {
  return border(call->thread, call->op->name, [&]() -> plait_status {
    plait_status status = check_lists(call, Lists(call, Spec::n_lists), Spec::optional);
    if (status == PLAIT_OK) status = Spec::check(call);
    if (status != PLAIT_OK || !Spec::counted) return status;
    if (const plait_tensor *counts = step_counts<Spec>(call->in))
      status = check_counts(call, counts, call->in[Spec::n_lists]);
    else
      status = check_steps(call, call->in[Spec::n_lists], call->in[0].n);
    return status == PLAIT_OK ? check_scale(call, call->in[call->n_in - 1]) : status;
  });
}

template <class Spec>
plait_status elementwise_kernel(plait_call *call) {
  return border(call->thread, call->op->name, [&]() -> plait_status {
    const Lists lists(call, Spec::n_lists);
    run(call, ElementwiseUpdate<Spec>(lists, call->in));
    return PLAIT_OK;
  });
}

// The steps of all parameters in ordinary operators. `rule` makes the rule of parameter i.
template <class F>
void decompose(Operands &operands, const Lists &lists, const F &rule) {
  for (uint32_t i = 0; i < lists.length; i++) {
    const auto r = rule(i);
    operands.read(i, r.scale);
    Array *const list = operands.list;
    const Array d = r.template gradient<Array>(r.flags, operands.scale, list[1], list[0]);
    r.template element<Array>(r.flags, d, list[0], list[2], list[3], list[4]);
    operands.write(i);
  }
}

// An engine may run it before the arguments were checked.
template <class Spec>
plait_status elementwise_decomposed(plait_call *call) {
  if (const plait_status status = elementwise_shape<Spec>(call); status != PLAIT_OK) return status;
  return border(call->thread, call->op->name, [&]() -> plait_status {
    const Lists lists(call, Spec::n_lists);
    Operands operands(call, lists);
    if constexpr (counts_of<Spec> > 0) {
      if (plait_tensor *counts = step_counts<Spec>(call->in)) {
        decompose(operands, lists, [&](uint32_t i) {
          auto r = Spec::template rule_of<Array>(operands.in, operands.count(counts, i));
          if (r.l2 != 0) r.flags |= Rule::decays;
          r.each_number([&](Array &number) { number = operands.as_operand(i, number); });
          return r;
        });
        return PLAIT_OK;
      }
    }
    const auto rules = rules_of<Spec>(lists, operands.in);
    decompose(operands, lists, [&](uint32_t i) { return rules[i]; });
    return PLAIT_OK;
  });
}

// The runtime counts the lists as read. All but grads are also written, although they are no
// results.
template <class Spec>
void elementwise_cost(const plait_call *call, plait_cost *out) noexcept {
  try {
    const Lists lists(call, Spec::n_lists);
    std::vector<plait_value> in(call->in, call->in + call->n_in);
    const int64_t first = 1;
    if (Spec::counted) in.back() = value(1.0);  // `grad_scale` may be on a device
    if (step_counts<Spec>(call->in))
      in[counts_of<Spec>] = none(), in[Spec::n_lists] = ints(&first, 1);
    uint64_t operations = 0;
    const auto rules = rules_of<Spec>(lists, in.data());
    for (uint32_t i = 0; i < lists.length; i++)
      operations += operations_of(rules[i]) * uint64_t(numel(lists.at(0, i)));
    out->operations = operations;
    out->written = 0;
    for (uint32_t k = 0; k < Spec::n_lists; k++)
      if (k != 1) out->written += bytes_of(call->in[k]);
  } catch (...) {  // no memory: the runtime's counts stay
  }
}

// The rule for tensors that several ranks hold: the tensors of each list lie alike, and a step acts
// on each element by itself.
inline std::string elementwise_sharding(std::string_view schema) {
  std::string letters = "e";
  const size_t first = schema.find('(') + 1, end = schema.rfind(") ->");
  for (size_t at = first; at < end; at = schema.find(", ", at) + 2) {
    if (schema.substr(at, 3) == "*, ") at += 3;
    letters += schema.substr(at, 8) == "Tensor[]" ? 'e' : '.';
    if (schema.find(", ", at) == schema.npos) break;
  }
  return letters;
}

template <class Spec>
Step elementwise(const char *schema, const char *doc) {
  static const std::string sharding = elementwise_sharding(schema);
  return {{PLAIT_HEADER(plait_op_def), schema, doc, 0, elementwise_shape<Spec>, nullptr, nullptr,
           nullptr, elementwise_decomposed<Spec>, nullptr, elementwise_cost<Spec>, nullptr,
           sharding.c_str()},
          elementwise_kernel<Spec>};
}

// `maximize` and, after it, `grad_scale`
inline double gradient_scale(const plait_value *in, int maximize) {
  return (in[maximize].u.i ? -1 : 1) * scale_of(in[maximize + 1]);
}

// The numbers in `which` must be in [0, 1).
inline plait_status check_fractions(const plait_call *call, std::initializer_list<int> which) {
  for (int k : which)
    if (!(call->in[k].u.f >= 0 && call->in[k].u.f < 1))
      return call->thread->runtime->fail(call, PLAIT_VALUE_ERROR, "`%s` must be in [0, 1); got %g",
                                         plait_arg_at(call->op, k)->name, call->in[k].u.f);
  return PLAIT_OK;
}

// The list of numbers in `which` holds one for each parameter.
inline plait_status check_per_parameter(const plait_call *call, int which) {
  if (call->in[which].n == call->in[0].n) return PLAIT_OK;
  return call->thread->runtime->fail(
      call, PLAIT_VALUE_ERROR, "`%s` must hold one number for each of `params`, %u; got %u",
      plait_arg_at(call->op, which)->name, call->in[0].n, call->in[which].n);
}

}  // namespace plait::optim
#endif  // PLAIT_OPTIM_ELEMENTWISE_HPP
