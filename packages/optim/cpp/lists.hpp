// The tensor lists of a fused step, and their checks before anything is written.
#ifndef PLAIT_OPTIM_LISTS_HPP
#define PLAIT_OPTIM_LISTS_HPP
#include <plait/plait.hpp>

#include <vector>

namespace plait::optim {

// An empty list that keeps its memory for the next call of this thread, so that a step allocates
// nothing. There is one for each type.
template <class T>
std::vector<T> &scratch() {
  static thread_local std::vector<T> list;
  list.clear();
  return list;
}

enum { max_operands = 5 };

// The leading Tensor[] arguments of a call: params, grads, then the state; state lists that may be
// empty are optional.
struct Lists {
  explicit Lists(const plait_call *call, uint32_t n_lists);
  plait_tensor *at(uint32_t list, uint32_t i) const { return items[list][i]; }
  bool has(uint32_t list) const { return present[list]; }

  plait_tensor *const *items[max_operands] = {};
  bool present[max_operands] = {};  // an optional list that is empty is absent
  uint32_t n_lists;
  uint32_t length;  // parameters
};

// Lists are as long as the parameters, and tensors with one index agree in shape and dtype (the
// runtime has checked devices and writability). `optional` has the bits of lists that may be empty.
plait_status check_lists(const plait_call *call, const Lists &lists, uint32_t optional);

// `steps` holds one positive number for each parameter, or a single one for all.
plait_status check_steps(const plait_call *call, const plait_value &steps, uint32_t n_params);

// `counts` is float64 of shape (parameters,), and `steps` is empty.
plait_status check_counts(const plait_call *call, const plait_tensor *counts,
                          const plait_value &steps);

}  // namespace plait::optim
#endif  // PLAIT_OPTIM_LISTS_HPP
