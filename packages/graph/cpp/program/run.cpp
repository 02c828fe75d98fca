// Runs of a program.
#include <algorithm>

#include <plait/layer.hpp>

#include "program/device_graph.hpp"

namespace plait::graph {

const TensorType *Program::output_type(size_t i) const {
  const Value &v = values_[size_t(outputs_[i])];
  return v.memory < 0 ? nullptr : &v.type;
}

int32_t Program::output_memory(size_t i) const {
  const Value &v = values_[size_t(outputs_[i])];
  return v.memory < 0 || v.offset || memories_[size_t(v.memory)].where != Where::output ? -1
                                                                                        : v.memory;
}

std::vector<std::pair<std::string, int32_t>> Program::memories() const {
  std::vector<std::pair<std::string, int32_t>> result;
  for (const Value &v : values_) result.emplace_back(v.name, v.memory);
  return result;
}

Tensor Program::current(std::string_view name) const {
  for (size_t i = 0; i < tensors_.size(); i++)
    if (values_[i].name == name) return tensors_[i];
  return Tensor();
}

std::vector<std::pair<std::string, std::vector<int64_t>>> Program::shapes() const {
  std::vector<std::pair<std::string, std::vector<int64_t>>> result;
  for (const Value &v : values_)
    if (v.memory >= 0) result.emplace_back(v.name, v.type.shape);
  return result;
}

// Whether the tensor of a value stays the same from run to run.
bool Program::is_fixed(const Value &v) const {
  if (v.memory < 0) return false;
  const Where where = memories_[size_t(v.memory)].where;
  return where == Where::weight || where == Where::block || where == Where::constant ||
         (where == Where::output && !keeps_outputs_);
}

Tensor Program::tensor_at(plait_thread *thread, const Value &v, plait_storage *storage,
                          char *begin) const {
  Tensor result;
  check(runtime->tensor_on(thread, storage, begin + v.offset, v.type.dtype,
                           int32_t(v.type.shape.size()), v.type.shape.data(), v.type.strides.data(),
                           result.out()));
  return result;
}

void Program::bind(plait_thread *thread, const std::vector<Tensor> &weights) {
  if (weights.size() != n_weights())
    check(runtime->raise(thread, PLAIT_VALUE_ERROR, "graph", "it has %zu weights, got %zu",
                         n_weights(), weights.size()));
  for (size_t i = 0; i < weights.size(); i++)
    check_type(thread, weights[i].get(), weight_type(i), "the weight", weight_names_[i]);
  weights_ = weights;
  is_bound_ = has_kernel_bytes_ = false;
  constants_in_order_ = writes_inputs_;
  std::unordered_map<const plait_storage *, size_t> first;
  for (size_t i = 0; i < weights.size(); i++) {
    const auto [other, is_first] = first.emplace(weights[i].get()->storage, i);
    if (!is_first && (is_written_[i] || is_written_[other->second])) constants_in_order_ = true;
    if (is_written_[i]) other->second = i;
  }
}

void Program::check_type(plait_thread *thread, const plait_tensor *t, const TensorType &type,
                         const char *what, const std::string &name) const {
  if (t->layers & layers_of_bytes)
    check(runtime->raise(thread, PLAIT_VALUE_ERROR, "graph",
                         "%s %s is batched, sparse or of another kind that has no elements of its "
                         "own; a graph takes dense tensors",
                         what, name.c_str()));
  bool fits = same(t->dl.dtype, type.dtype) && same(t->dl.device, type.device) &&
              size_t(t->dl.ndim) == type.shape.size();
  for (int i = 0; fits && i < t->dl.ndim; i++) fits = t->dl.shape[i] == type.shape[size_t(i)];
  if (!fits)
    check(runtime->raise(thread, PLAIT_SHAPE_ERROR, "graph",
                         "%s %s is %s%s on %s; the graph is for %s%s on %s", what, name.c_str(),
                         plait::name(t->dl.dtype), shape_text(t).c_str(),
                         device_text(runtime, t->dl.device).c_str(), plait::name(type.dtype),
                         text(type.shape.data(), int64_t(type.shape.size())).c_str(),
                         device_text(runtime, type.device).c_str()));
  const bool empty = numel(t) == 0;
  for (int i = 0; i < t->dl.ndim; i++)
    if (!empty && t->dl.shape[i] != 1 && t->dl.strides[i] != type.strides[size_t(i)])
      check(runtime->raise(thread, PLAIT_VALUE_ERROR, "graph",
                           "%s %s has the strides %s; the graph is for %s", what, name.c_str(),
                           text(t->dl.strides, t->dl.ndim).c_str(),
                           text(type.strides.data(), int64_t(type.strides.size())).c_str()));
}

// Memory for the values that nobody keeps, and all tensors that stay the same.
void Program::make_fixed(plait_thread *thread) {
  if (weights_.size() != n_weights())
    check(runtime->raise(thread, PLAIT_VALUE_ERROR, "graph", "its weights were not bound"));
  device_graph_.reset();
  tensors_.assign(values_.size(), Tensor());
  weight_versions_.clear();
  moving_.clear();
  moving_slots_.clear();
  weight_data_.clear();
  for (const Tensor &w : weights_) weight_data_.push_back(w.get()->dl.data);
  for (Block &b : blocks_)
    if (!b.storage && b.nbytes)
      check(runtime->storage_new(thread, b.device, b.nbytes, b.storage.out()));
  std::vector<Ref<plait_storage>> kept(memories_.size());  // of outputs that stay the same
  for (size_t i = 0; i < values_.size(); i++) {
    const Value &v = values_[i];
    if (is_scratch(int32_t(i))) continue;
    if (!is_fixed(v)) {
      if (v.memory >= 0) moving_.push_back(int32_t(i));
      continue;
    }
    const Memory &m = memories_[size_t(v.memory)];
    if (m.where == Where::weight) {
      const Tensor &w = weights_[size_t(m.value) - n_inputs()];
      tensors_[i] = int32_t(i) == m.value ? w
                                          : tensor_at(thread, v, w.get()->storage,
                                                      static_cast<char *>(w.get()->dl.data));
      continue;
    }
    if (m.where == Where::block && m.first < 0) continue;  // no node that runs uses it
    Ref<plait_storage> &storage = kept[size_t(v.memory)];
    uint64_t offset = 0;
    if (m.where == Where::block) {
      const Block &block = block_of(m.device);
      storage = block.storage;
      offset = block.begin + m.offset;
    } else if (!storage) {
      check(runtime->storage_new(thread, m.device, m.nbytes, storage.out()));
    }
    tensors_[i] = tensor_at(thread, v, storage.get(), static_cast<char *>(storage->data) + offset);
  }
  for (Node &n : nodes_) bind_node(n);
  for (Node &n : joined_) bind_node(n);
  if (!is_region_) device_graph_ = DeviceGraph::make(*this);
  bind_groups(thread);
  is_bound_ = has_run_ = true;
}

const Program::Block &Program::block_of(DLDevice device) const {
  size_t i = 0;
  while (!same(blocks_[i].device, device)) i++;  // each device of a memory has one
  return blocks_[i];
}

// Gives the regions of a node their parts of the blocks.
void Program::bind_blocks(Node &n) {
  for (Program *region : {n.regions->first.get(), n.regions->second.get()})
    for (Block &inner : region->blocks_)
      for (const int32_t i : n.regions->blocks) {
        const Memory &m = memories_[size_t(i)];
        if (!same(m.device, inner.device)) continue;
        const Block &outer = block_of(m.device);
        inner.storage = outer.storage;
        inner.begin = outer.begin + m.offset;
        region->is_bound_ = false;
      }
}

// Gives a node the tensors that it reads and writes, or notes where each run is to put them.
void Program::bind_node(Node &n) {
  const auto bind = [&](plait_tensor **at, int32_t value) {
    if (is_scratch(value)) return;
    if (is_fixed(values_[size_t(value)]))
      *at = tensors_[size_t(value)].get();
    else
      moving_slots_.push_back({at, value});
  };
  for (const Slot &slot : n.slots) bind(slot.at, slot.value);
  if (n.form != PLAIT_FUNCTION || n.allocates || !n.runs) return;
  if (n.regions) {
    bind_blocks(n);
    for (size_t i = 0; i < n.results[0].size(); i++) bind(&n.regions->results[i], n.results[0][i]);
    return;
  }
  for (size_t i = 0; i < n.results.size(); i++) {
    n.out[i].tag = PLAIT_TENSOR;
    bind(&n.out[i].u.t, n.results[i][0]);
  }
}

// Computes what depends on weights alone, if one was written to since.
void Program::compute_constants(plait_thread *thread) {
  const auto version = [](const Tensor &w) {
    return __atomic_load_n(&w.get()->storage->version, __ATOMIC_ACQUIRE);
  };
  // of these, writes by others are not seen
  constexpr uint64_t foreign =
      PLAIT_STORAGE_EXTERNAL | PLAIT_STORAGE_SHARED | PLAIT_STORAGE_EXPORTED;
  // a constant reads no weight to which the program writes
  bool is_current = weight_versions_.size() == weights_.size() + 1;
  for (size_t i = 0; is_current && i < weights_.size(); i++)
    is_current = is_written_[i] || (weight_versions_[i] == version(weights_[i]) &&
                                    !(weights_[i].get()->storage->flags & foreign));
  if (is_current) return;
  weight_versions_.clear();
  for (const Tensor &w : weights_) weight_versions_.push_back(version(w));
  call_constants(thread);
  weight_versions_.push_back(0);  // all were computed
}

void Program::begin_run(plait_thread *thread, plait_tensor *const *inputs, size_t n,
                        plait_tensor *const *targets) {
  if (n != n_inputs())
    check(runtime->raise(thread, PLAIT_VALUE_ERROR, "graph", "it has %zu inputs, got %zu",
                         n_inputs(), n));
  for (size_t i = 0; i < n; i++)
    check_type(thread, inputs[i], values_[i].type, "the input", input_names_[i]);
  bool moved = !is_bound_;
  for (size_t i = 0; i < weights_.size() && !moved; i++)
    moved = weights_[i].get()->dl.data != weight_data_[i];
  if (moved) make_fixed(thread);
  if (device_graph_) device_graph_->begin(thread);
  if (has_constants_ && !constants_in_order_ && !is_round_) compute_constants(thread);
  std::vector<Ref<plait_storage>> made;
  if (targets) made.resize(memories_.size());
  for (size_t i = 0; targets && i < outputs_.size(); i++)
    if (const int32_t m = values_[size_t(outputs_[i])].memory; m >= 0)
      made[size_t(m)] = Ref<plait_storage>::share(targets[i]->storage);
  for (const int32_t i : moving_) {
    const Value &v = values_[size_t(i)];
    const Memory &m = memories_[size_t(v.memory)];
    if (m.where == Where::input) {
      plait_tensor *input = inputs[m.value];
      tensors_[size_t(i)] =
          i == m.value ? Tensor::share(input)
                       : tensor_at(thread, v, input->storage, static_cast<char *>(input->dl.data));
      continue;
    }
    if (made.empty()) made.resize(memories_.size());
    Ref<plait_storage> &storage = made[size_t(v.memory)];
    if (!storage) check(runtime->storage_new(thread, m.device, m.nbytes, storage.out()));
    tensors_[size_t(i)] = tensor_at(thread, v, storage.get(), static_cast<char *>(storage->data));
  }
  for (const Slot &slot : moving_slots_) *slot.at = tensors_[size_t(slot.value)].get();
  for (Node &node : nodes_) set_numbers(node);
}

void Program::set_numbers(Node &node) const {
  for (const NumberSlot &slot : node.numbers) {
    const Number &number = numbers_[size_t(slot.number)];
    if (slot.integer)
      *slot.integer = number.integer;
    else if (slot.real)
      *slot.real = number.real;
    else if (slot.value->tag == PLAIT_INT)
      slot.value->u.i = number.integer;
    else
      slot.value->u.f = number.real;
  }
}

void Program::call_constants(plait_thread *thread) {
  for (Node &node : nodes_)
    if (node.is_constant) call_node(thread, node);
}

void Program::call_node(plait_thread *thread, Node &n) {
  if (n.regions) return run_regions(thread, n);
  plait_call c{};
  c.size = sizeof c;
  c.n_in = n.op->n_args;
  c.n_out = n.op->n_results;
  c.op = n.op;
  c.in = n.in.data();
  c.out = n.out.data();
  c.thread = thread;
  if (!n.allocates) {
    c.form = n.form == PLAIT_FUNCTION && !n.results.empty() ? uint32_t(PLAIT_OUT) : n.form;
    check(runtime->call(&c));
    return;
  }
  for (const Slot &slot : n.slots) *slot.at = tensors_[size_t(slot.value)].get();
  c.form = n.form;
  if (n.form != PLAIT_FUNCTION) {
    check(runtime->call(&c));
    return;
  }
  std::fill(n.out.begin(), n.out.end(), none());
  check(runtime->call(&c));
  for (size_t i = 0; i < n.out.size(); i++) {
    plait_value &v = n.out[i];
    const std::vector<int32_t> &values = n.results[i];
    const uint32_t count = v.tag == PLAIT_TENSORS ? v.n : 1;
    for (uint32_t k = 0; k < count && k < values.size(); k++) {
      plait_tensor *t = v.tag == PLAIT_TENSOR    ? v.u.t
                        : v.tag == PLAIT_TENSORS ? v.u.ts[k]
                                                 : nullptr;
      if (values[k] >= 0) tensors_[size_t(values[k])] = Tensor::share(t);
    }
    const bool as_named = count == values.size();
    runtime->release_value(&v);
    if (!as_named)
      check(runtime->raise(thread, PLAIT_VALUE_ERROR, n.op->name,
                           "result %zu has %u tensors; the graph has %zu names for it", i, count,
                           values.size()));
  }
}

void Program::end_run() {
  for (const int32_t i : moving_) tensors_[size_t(i)] = Tensor();
  for (const Node &n : nodes_)
    if (n.allocates)
      for (const auto &values : n.results)
        for (const int32_t v : values)
          if (v >= 0) tensors_[size_t(v)] = Tensor();
}

// A node of the program writes a new value to memory that is there already, which eager calls do
// not count.
void Program::set_version(const Value &v, plait_tensor *t, uint64_t version) const {
  if (v.memory < 0 || memories_[size_t(v.memory)].where != Where::output) return;
  restore_version(t->storage, version);
}

void Program::take_outputs(plait_thread *thread, std::vector<Tensor> *outputs) {
  outputs->clear();
  outputs->reserve(outputs_.size());
  for (size_t i = 0; i < outputs_.size(); i++) {
    const auto v = size_t(outputs_[i]);
    Tensor result = tensors_[v];
    if (keeps_outputs_) set_version(values_[v], result.get(), output_versions_[i]);
    if (is_alias_[i] && keeps_outputs_) {  // another tensor in the same memory
      result = Tensor();
      check(runtime->tensor_alias(thread, tensors_[v].get(), result.out()));
    }
    outputs->push_back(std::move(result));
  }
}

void Program::compute(plait_thread *thread, plait_tensor *const *inputs, size_t n,
                      plait_tensor *const *targets, std::vector<Tensor> *outputs,
                      const Observer &observer) {
  const std::lock_guard<std::mutex> lock(runs_);
  const NoLayers none(thread);
  try {
    begin_run(thread, inputs, n, targets);
    if (observer || targets || !device_graph_ || !device_graph_->run(thread))
      call_nodes(thread, observer);
    if (outputs) take_outputs(thread, outputs);
  } catch (...) {
    end_run();
    throw;
  }
  end_run();
  for (Number &number : numbers_) {
    number.integer += number.integer_step;
    number.real = number.is_integer ? double(number.integer) : number.real + number.real_step;
  }
}

void Program::run(plait_thread *thread, plait_tensor *const *inputs, size_t n,
                  std::vector<Tensor> *outputs, const Observer &observer) {
  compute(thread, inputs, n, nullptr, outputs, observer);
}

void Program::run_into(plait_thread *thread, plait_tensor *const *inputs, size_t n,
                       plait_tensor *const *targets) {
  compute(thread, inputs, n, targets, nullptr, {});
}

}  // namespace plait::graph
