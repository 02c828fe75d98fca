// Copies that nobody needs. A capture keeps the memory of all values, so that a tensor seems to be
// in use where eager code takes it over: the engine copies each gradient that becomes a `grad`.
#include <algorithm>

#include "program/program.hpp"

namespace plait::graph {

void Program::each_written(const Node &n, const std::function<void(int32_t)> &f) const {
  for (const Slot &slot : n.slots) {
    const int32_t m = values_[size_t(slot.value)].memory;
    if (m < 0) continue;
    const auto *at = reinterpret_cast<const char *>(slot.at);
    const auto lies_in = [&](const void *begin, size_t nbytes) {
      return at >= static_cast<const char *>(begin) &&
             at < static_cast<const char *>(begin) + nbytes;
    };
    if (lies_in(n.out.data(), n.out.size() * sizeof(plait_value))) f(m);
    for (uint16_t i = 0; i < n.op->n_args; i++) {
      const plait_value &v = n.in[i];
      const bool writes =
          (plait_arg_at(n.op, i)->flags & PLAIT_ARG_WRITES) || (n.form == PLAIT_INPLACE && i == 0);
      if (writes && (lies_in(&v, sizeof v) ||
                     (v.tag == PLAIT_TENSORS && lies_in(v.u.ts, v.n * sizeof *v.u.ts))))
        f(m);
    }
  }
}

// The result of `clone` becomes another name of its source where nobody can tell: neither is
// written afterwards, or the source is not used any more.
void Program::elide_copies() {
  const plait_op *clone = runtime->op("clone");
  const auto n_memories = memories_.size();
  std::vector<int32_t> last_use(n_memories, -1), last_write(n_memories, -1);
  std::vector<bool> is_returned(n_memories);
  for (size_t i = 0; i < nodes_.size(); i++) {
    const Node &n = nodes_[i];
    if (!n.runs) continue;
    for (const Slot &slot : n.slots)
      if (const int32_t m = values_[size_t(slot.value)].memory; m >= 0)
        last_use[size_t(m)] = int32_t(i);
    each_written(n, [&](int32_t m) { last_write[size_t(m)] = int32_t(i); });
  }
  for (const int32_t v : outputs_)
    if (const int32_t m = values_[size_t(v)].memory; m >= 0) is_returned[size_t(m)] = true;

  std::vector<int32_t> name(n_memories);  // of the memory that a memory became a part of
  for (size_t m = 0; m < n_memories; m++) name[m] = int32_t(m);
  for (size_t i = 0; i < nodes_.size(); i++) {
    Node &n = nodes_[i];
    if (n.op != clone || n.form != PLAIT_FUNCTION || !n.runs || n.allocates || n.is_constant)
      continue;
    const Value &from = values_[size_t(n.slots[0].value)], &to = values_[size_t(n.results[0][0])];
    const auto x = size_t(name[size_t(from.memory)]), y = size_t(to.memory);
    const Memory &source = memories_[x], &target = memories_[y];
    const bool are_alike = same(from.type.dtype, to.type.dtype) &&
                           from.type.shape == to.type.shape &&
                           from.type.strides == to.type.strides && !from.offset && !to.offset &&
                           source.nbytes == target.nbytes && same(source.device, target.device);
    if (!are_alike || source.where != Where::block || target.where != Where::block) continue;
    const bool is_last = last_use[x] == int32_t(i) && !is_returned[x];
    const bool are_kept = last_write[x] < int32_t(i) && last_write[y] < int32_t(i);
    if ((!is_last && !are_kept) || (is_returned[x] && is_returned[y])) continue;
    n.runs = false;
    name[y] = int32_t(x);
    last_use[x] = std::max(last_use[x], last_use[y]);
    last_write[x] = std::max(last_write[x], last_write[y]);
    is_returned[x] = is_returned[x] || is_returned[y];
  }
  for (Value &v : values_)
    if (v.memory >= 0) v.memory = name[size_t(v.memory)];
}

}  // namespace plait::graph
