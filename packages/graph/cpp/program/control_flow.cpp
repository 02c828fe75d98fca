// Nodes with regions: their definitions, and how they run.
#include "program/control_flow.hpp"

#include <chrono>

#include "program/program.hpp"

namespace plait::graph {

bool (*is_interrupted)();

namespace {

plait_arg argument(const char *name, uint8_t kind) {
  plait_arg result{};
  result.name = name;
  result.kind = kind;
  result.alias_arg = -1;
  return result;
}

plait_op definition(const char *name, const char *schema, const plait_arg *args,
                    const plait_arg *results) {
  plait_op op{};
  op.h = PLAIT_HEADER(plait_op);
  op.name = name;
  op.schema = schema;
  op.args = args;
  op.n_args = 2;
  op.results = results;
  op.n_results = 1;
  op.arg_size = sizeof(plait_arg);
  return op;
}

// How often a loop asks whether the user wants to stop it.
constexpr std::chrono::milliseconds interval(50);

void copy(plait_thread *thread, plait_tensor *target, plait_tensor *source) {
  static const Operator copy_operator(runtime, "copy_");
  copy_operator(thread, target, source, false);
}

// The value of a predicate, which the host waits for.
bool truth(plait_thread *thread, const plait_op *op, plait_tensor *t) {
  if (!t || !same(t->dl.dtype, dtype::bool_) || numel(t) != 1)
    check(runtime->raise(thread, PLAIT_VALUE_ERROR, op->name,
                         "the predicate must be a bool with one element"));
  Tensor on_host = Tensor::share(t);
  if (t->dl.device.device_type != kDLCPU) check(runtime->host_copy(thread, t, on_host.out()));
  return *on_host.data<uint8_t>() != 0;
}

}  // namespace

const plait_op *control_flow_operator(std::string_view name) {
  static const plait_arg of_cond[] = {argument("predicate", PLAIT_KIND_TENSOR),
                                      argument("operands", PLAIT_KIND_TENSORS)};
  static const plait_arg of_loop[] = {argument("carried", PLAIT_KIND_TENSORS),
                                      argument("captured", PLAIT_KIND_TENSORS)};
  static const plait_arg results[] = {argument(nullptr, PLAIT_KIND_TENSORS)};
  static const plait_op cond =
      definition("cond", "cond(Tensor predicate, Tensor[] operands) -> Tensor[]", of_cond, results);
  static const plait_op loop =
      definition("while_loop", "while_loop(Tensor[] carried, Tensor[] captured) -> Tensor[]",
                 of_loop, results);
  return name == cond.name ? &cond : name == loop.name ? &loop : nullptr;
}

const plait_op *find_operator(const char *name) {
  const plait_op *op = control_flow_operator(name);
  if (!op) op = runtime->op(name);
  return op && std::strcmp(op->name, name) == 0 ? op : nullptr;
}

// The inputs of a region during several calls of its nodes.
class Program::RegionRun {
 public:
  RegionRun(plait_thread *thread, Program *region, plait_tensor *const *inputs, size_t n)
      : thread_(thread), region_(*region) {
    try {
      region_.begin_run(thread, inputs, n);
    } catch (...) {
      region_.end_run();
      throw;
    }
  }
  RegionRun(const RegionRun &) = delete;
  RegionRun &operator=(const RegionRun &) = delete;
  ~RegionRun() { region_.end_run(); }
  void call_nodes() {
    if (is_first_ && region_.is_round_) region_.call_constants(thread_);
    is_first_ = false;
    region_.call_nodes(thread_);
  }
  plait_tensor *output(size_t i) const {
    return region_.tensors_[size_t(region_.outputs_[i])].get();
  }

 private:
  plait_thread *thread_;
  Program &region_;
  bool is_first_ = true;
};

void Program::run_regions(plait_thread *thread, Node &n) {
  for (const Slot &slot : n.slots) *slot.at = tensors_[size_t(slot.value)].get();
  if (n.regions->is_loop)
    run_loop(thread, n);
  else
    run_branch(thread, n);
}

void Program::run_branch(plait_thread *thread, Node &n) {
  Regions &r = *n.regions;
  Program *branch = truth(thread, n.op, n.in[0].u.t) ? r.first.get() : r.second.get();
  RegionRun run(thread, branch, n.in[1].u.ts, n.in[1].n);
  run.call_nodes();
  for (size_t i = 0; i < r.results.size(); i++) copy(thread, r.results[i], run.output(i));
}

// The carried values lie where the results are to lie.
void Program::run_loop(plait_thread *thread, Node &n) {
  Regions &r = *n.regions;
  for (size_t i = 0; i < r.results.size(); i++) copy(thread, r.results[i], n.in[0].u.ts[i]);
  r.inputs.assign(r.results.begin(), r.results.end());
  r.inputs.insert(r.inputs.end(), n.in[1].u.ts, n.in[1].u.ts + n.in[1].n);
  RegionRun condition(thread, r.first.get(), r.inputs.data(), r.inputs.size());
  RegionRun body(thread, r.second.get(), r.inputs.data(), r.inputs.size());
  auto last = std::chrono::steady_clock::now();
  for (;;) {
    condition.call_nodes();
    if (!truth(thread, n.op, condition.output(0))) return;
    if (const auto now = std::chrono::steady_clock::now(); now - last > interval) {
      last = now;
      if (is_interrupted && is_interrupted())
        check(runtime->raise(thread, PLAIT_ERROR, n.op->name, "the loop was interrupted"));
    }
    body.call_nodes();
    for (size_t i = 0; i < r.results.size(); i++)
      if (body.output(i) != r.results[i]) copy(thread, r.results[i], body.output(i));
  }
}

}  // namespace plait::graph
