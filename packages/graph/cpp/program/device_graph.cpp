// Programs as graphs of a device.
//
// A graph of a device works on fixed addresses, with the arguments that its kernels had when they
// were recorded. So inputs are copied to places of the program, outputs from there to new tensors,
// and the nodes that another run calls with something else are called between the graphs: those
// with a number that changes, those whose results have another size, and those that use an input
// where it is.
#include "program/device_graph.hpp"

#include <algorithm>

namespace plait::graph {

namespace {

constexpr int kRunsBefore = 2;        // after them libraries have chosen their kernels
constexpr size_t kFewestNodes = 2;    // of a graph
constexpr size_t kMostFailures = 16;  // nodes that could not be recorded
// Inputs and outputs of this size are copied in a few microseconds.
constexpr uint64_t kSmallCopies = uint64_t(16) << 20;

// The text of the thread's error, which ends.
std::string take_error(plait_thread *thread) {
  std::string text = thread->error ? thread->error->message : "an error without a text";
  runtime->clear(thread);
  return text;
}

}  // namespace

std::shared_ptr<Program::DeviceGraph> Program::DeviceGraph::make(Program &p) {
  for (const Memory &m : p.memories_) {
    if (!is_accelerator(m.device)) continue;
    const auto type = int32_t(m.device.device_type);
    const auto *table = role<plait_device>(runtime, type);
    const auto *allocator = role<plait_allocator>(runtime, type);
    if (table && allocator && PLAIT_HAS(plait_device, table, capture_begin) &&
        PLAIT_HAS(plait_allocator, allocator, pool_new))
      return std::make_shared<DeviceGraph>(p, m.device, table, allocator);
  }
  return nullptr;
}

Program::DeviceGraph::DeviceGraph(Program &p, DLDevice device, const plait_device *table,
                                  const plait_allocator *allocator)
    : p_(p),
      device_(device),
      table_(table),
      allocator_(allocator),
      failures_(p.nodes_.size()),
      changes_(p.numbers_.size()) {
  for (size_t i = 0; i < changes_.size(); i++)
    changes_[i] =
        p.numbers_[i].is_integer ? p.numbers_[i].integer_step != 0 : p.numbers_[i].real_step != 0;
  find_inputs();
}

Program::DeviceGraph::~DeviceGraph() { give_up(); }

// A graph may still run, and others get its memory as soon as it is free.
void Program::DeviceGraph::drop_parts() {
  if (parts_.empty()) return;
  plait_thread *thread = runtime->thread();
  if (runtime->stream_synchronize(thread, device_, latest_.get()) < 0) runtime->clear(thread);
  for (const Part &part : parts_)
    if (part.graph) table_->graph_free(table_->ctx, part.graph);
  parts_.clear();
}

void Program::DeviceGraph::begin(plait_thread *thread) {
  plait_stream *now = runtime->stream(thread, device_);
  if (table_->capture_query(table_->ctx, device_, now)) return;
  // a stream that waits for one that is recorded would be recorded, too
  if (has_run_ && !table_->capture_query(table_->ctx, device_, latest_.get()))
    check(wait_between(thread, device_, latest_.get(), device_, now));
  has_run_ = true;
  if (now != latest_.get()) latest_ = Ref<plait_stream>::share(now);
}

// ---- what can be recorded ----------------------------------------------------------------------

// Whether most bytes between the first and the last element belong to others.
bool Program::DeviceGraph::is_far_apart(const Memory &m) const {
  const TensorType &type = p_.values_[size_t(m.value)].type;
  uint64_t elements = 1;
  for (size_t i = 0; i < type.shape.size(); i++)
    if (type.strides[i] != 0) elements *= uint64_t(type.shape[i]);
  return m.nbytes > kSmallCopies && m.nbytes / 2 > elements * uint64_t(itemsize(type.dtype));
}

void Program::DeviceGraph::find_inputs() {
  is_direct_.assign(p_.n_inputs(), false);
  for (size_t i = 0; i < p_.memories_.size(); i++) {
    const Memory &m = p_.memories_[i];
    if (m.where != Where::input && m.where != Where::weight) continue;
    if (m.is_written) written_.push_back(int32_t(i));
    if (m.where == Where::weight) continue;
    if (m.is_written || !same(m.device, device_) || is_far_apart(m))
      is_direct_[size_t(m.value)] = true;
    else
      copied_inputs_.push_back(int32_t(i));
  }
}

std::string Program::DeviceGraph::reason_of(const Value &v) const {
  if (v.memory < 0) return "it uses " + v.name + ", which is a new tensor in each run";
  const Memory &m = p_.memories_[size_t(v.memory)];
  if (!same(m.device, device_)) return v.name + " lies on " + device_text(runtime, m.device);
  if (m.where == Where::input && is_direct_[size_t(m.value)]) {
    const std::string &name = p_.input_names_[size_t(m.value)];
    return m.is_written ? "the program writes to the input " + name
                        : "the elements of the input " + name + " lie far apart";
  }
  return "";
}

// Why a node cannot be recorded, or "".
std::string Program::DeviceGraph::reason_of(const Node &n) const {
  if (n.regions) return "how often its operators run depends on values";
  for (const auto &values : n.results)  // what a call gives back without a name is not kept
    if (n.allocates && std::any_of(values.begin(), values.end(), [](int32_t v) { return v >= 0; }))
      return "its results are new tensors in each run";
  for (const NumberSlot &slot : n.numbers)
    if (changes_[size_t(slot.number)])
      return "the number " + p_.numbers_[size_t(slot.number)].name + " changes from run to run";
  std::string reason;
  for (const Slot &slot : n.slots)
    if (reason.empty()) reason = reason_of(p_.values_[size_t(slot.value)]);
  for (const auto &values : n.results)
    for (const int32_t v : values)
      if (reason.empty() && v >= 0) reason = reason_of(p_.values_[size_t(v)]);
  return reason;
}

// Whether an input lies in memory to which the program writes: then a copy of it has other values.
bool Program::DeviceGraph::has_shared_inputs() const {
  const auto storage_of = [&](int32_t memory) {
    return p_.tensors_[size_t(p_.memories_[size_t(memory)].value)].get()->storage;
  };
  for (const int32_t input : copied_inputs_)
    for (const int32_t other : written_)
      if (storage_of(input) == storage_of(other)) return true;
  return false;
}

// Whether numbers have other values than those that were recorded; they are not recorded again.
bool Program::DeviceGraph::find_changed_numbers() {
  bool any = false;
  for (size_t i = 0; i < numbers_.size(); i++) {
    const Number &now = p_.numbers_[i], &before = numbers_[i];
    if (changes_[i] || (now.integer == before.integer &&
                        (now.is_integer || !std::memcmp(&now.real, &before.real, sizeof now.real))))
      continue;
    changes_[i] = any = true;
  }
  return any;
}

uint64_t Program::DeviceGraph::copied_bytes() const {
  uint64_t total = 0;
  for (const Memory &m : p_.memories_)
    if ((m.where == Where::input && !is_direct_[size_t(m.value)]) ||
        (m.where == Where::output && p_.keeps_outputs_))
      total += m.nbytes;
  return total;
}

// ---- recording ---------------------------------------------------------------------------------

// Exchanges the tensors of one run and those of the graphs, and back.
class Program::DeviceGraph::Exchange {
 public:
  explicit Exchange(DeviceGraph *g) : g_(*g) { swap(); }
  Exchange(const Exchange &) = delete;
  Exchange &operator=(const Exchange &) = delete;
  ~Exchange() { swap(); }

 private:
  void swap() {
    for (Static &each : g_.statics_) std::swap(g_.p_.tensors_[size_t(each.value)], each.tensor);
    for (const Slot &slot : g_.p_.moving_slots_)
      *slot.at = g_.p_.tensors_[size_t(slot.value)].get();
  }
  DeviceGraph &g_;
};

void Program::DeviceGraph::make_statics(plait_thread *thread) {
  if (!storages_.empty()) return;
  storages_.resize(p_.memories_.size());
  for (const int32_t i : p_.moving_) {
    const Value &v = p_.values_[size_t(i)];
    const Memory &m = p_.memories_[size_t(v.memory)];
    if (!same(m.device, device_) || (m.where == Where::input && is_direct_[size_t(m.value)]))
      continue;
    Ref<plait_storage> &storage = storages_[size_t(v.memory)];
    const bool is_first = !storage;
    if (is_first)
      check(runtime->storage_new(thread, device_, std::max<uint64_t>(m.nbytes, 1), storage.out()));
    auto *const begin = static_cast<char *>(storage->data) - m.begin;
    statics_.push_back({i, is_first, p_.tensor_at(thread, v, storage.get(), begin)});
  }
}

void Program::DeviceGraph::find_parts() {
  Part part{0, 0, 0, nullptr};
  const auto finish = [&] {
    if (part.n_nodes >= kFewestNodes) parts_.push_back(part);
    part.n_nodes = 0;
  };
  for (size_t i = 0; i < p_.nodes_.size(); i++) {
    const Node &n = p_.nodes_[i];
    if (!runs_in_order(n)) continue;
    if (!failures_[i].empty() || !reason_of(n).empty()) {
      finish();
      continue;
    }
    if (!part.n_nodes) part.begin = i;
    part.n_nodes++;
    part.end = i + 1;
  }
  finish();
}

void Program::DeviceGraph::record(plait_thread *thread, Part *part) {
  const StreamGuard guard(thread, device_, stream_.get());
  allocator_->pool_use(allocator_->ctx, device_, stream_.get(), pool_);
  plait_status s = table_->capture_begin(table_->ctx, thread, device_, stream_.get());
  const bool is_begun = s >= 0;
  for (size_t i = part->begin; i < part->end && s >= 0; i++) {
    if (!runs_in_order(p_.nodes_[i])) continue;
    s = border(thread, "graph", [&] { return p_.call_node(thread, p_.nodes_[i]), PLAIT_OK; });
    if (s < 0) failures_[i] = take_error(thread);
  }
  if (is_begun) {
    const plait_status end =
        table_->capture_end(table_->ctx, thread, device_, stream_.get(), &part->graph);
    if (s >= 0)
      s = end;
    else if (end < 0)
      runtime->clear(thread);
  }
  allocator_->pool_use(allocator_->ctx, device_, stream_.get(), nullptr);
  check(s);
}

// Records all parts, or sets `refusal_`.
void Program::DeviceGraph::record_parts(plait_thread *thread) {
  if (copied_bytes() > std::max(kSmallCopies, p_.planned_bytes())) {
    refusal_ = "its inputs and outputs are larger than its other values, and would be copied";
    return;
  }
  if (!stream_) check(runtime->stream_new(thread, device_, 0, stream_.out()));
  if (!pool_ && !(pool_ = allocator_->pool_new(allocator_->ctx, device_)))
    check(runtime->raise(thread, PLAIT_MEMORY_ERROR, "graph", "out of memory for a pool"));
  make_statics(thread);
  const Exchange exchange(this);
  for (size_t attempt = 0; attempt < kMostFailures; attempt++) {
    drop_parts();
    find_parts();
    if (parts_.empty()) {
      refusal_ = "no two operators behind each other can be recorded";
      return;
    }
    numbers_ = p_.numbers_;
    const auto before = failures_;
    const plait_status s = border(thread, "graph", [&] {
      for (Part &part : parts_) record(thread, &part);
      return PLAIT_OK;
    });
    if (s >= 0) return;
    if (failures_ == before) throw Error(s);  // no operator is the reason
    runtime->clear(thread);
  }
  refusal_ = "too many operators cannot be recorded";
}

// Whether there are graphs now; else `refusal_` says why, and their memory is free.
bool Program::DeviceGraph::try_to_record(plait_thread *thread) {
  const plait_status s = border(thread, "graph", [&] { return record_parts(thread), PLAIT_OK; });
  if (s < 0) refusal_ = take_error(thread);
  if (refusal_.empty()) return true;
  give_up();
  return false;
}

void Program::DeviceGraph::give_up() {
  drop_parts();
  statics_.clear();
  storages_.clear();
  if (pool_) allocator_->pool_free(allocator_->ctx, std::exchange(pool_, nullptr));
}

// ---- runs --------------------------------------------------------------------------------------

// Within an exchange, where `statics_` has the tensors of the run.
void Program::DeviceGraph::copy_memories(plait_thread *thread, Where where,
                                         plait_stream *stream) const {
  for (const Static &each : statics_) {
    const auto memory = size_t(p_.values_[size_t(each.value)].memory);
    const Memory &m = p_.memories_[memory];
    if (m.where != where || !each.is_first || m.nbytes == 0) continue;
    plait_tensor *t = each.tensor.get();
    const bool is_input = where == Where::input;
    if (is_input && numel(t) == 0) continue;
    runtime->record_use(t->storage, stream);
    // an input may lie anywhere in its storage; an output has one of its own
    void *own = storages_[memory]->data;
    void *other = is_input ? static_cast<char *>(t->dl.data) + m.begin : t->storage->data;
    check(table_->copy(table_->ctx, thread, is_input ? own : other, device_, is_input ? other : own,
                       device_, m.nbytes, stream, PLAIT_COPY_ASYNC));
  }
}

bool Program::DeviceGraph::run(plait_thread *thread) {
  plait_stream *stream = runtime->stream(thread, device_);
  // work that another graph records is a part of that one
  if (!refusal_.empty() || table_->capture_query(table_->ctx, device_, stream)) return false;
  if (has_shared_inputs()) return false;
  if (parts_.empty() && ++runs_ <= kRunsBefore) return false;
  if ((parts_.empty() || find_changed_numbers()) && !try_to_record(thread)) return false;
  const Exchange exchange(this);
  copy_memories(thread, Where::input, stream);
  // what calls do for their tensors: memory is kept until the stream has used it
  for (const Tensor &w : p_.weights_) runtime->record_use(w.get()->storage, stream);
  for (const Block &b : p_.blocks_)
    if (b.storage) runtime->record_use(b.storage.get(), stream);
  for (const Ref<plait_storage> &each : storages_)
    if (each) runtime->record_use(each.get(), stream);
  for (size_t i = 0; i < p_.n_weights(); i++)
    if (p_.is_written_[i]) wrote(p_.weights_[i].get());
  auto part = parts_.begin();
  for (size_t i = 0; i < p_.nodes_.size(); i++) {
    if (part != parts_.end() && part->begin == i) {
      check(table_->graph_launch(table_->ctx, thread, part->graph, device_, stream));
      i = part++->end - 1;
    } else if (runs_in_order(p_.nodes_[i])) {
      p_.call_node(thread, p_.nodes_[i]);
    }
  }
  copy_memories(thread, Where::output, stream);
  return true;
}

std::string Program::DeviceGraph::text() const {
  const std::string name = device_text(runtime, device_);
  if (!refusal_.empty()) return name + ": not recorded: " + refusal_;
  if (parts_.empty()) return name + ": not recorded yet";
  size_t recorded = 0;
  for (const Part &part : parts_) recorded += part.n_nodes;
  const bool is_one = parts_.size() == 1;
  std::string result = name + ": " + std::to_string(parts_.size()) +
                       (is_one ? " graph of " : " graphs of ") + std::to_string(recorded) +
                       " operators";
  auto part = parts_.begin();
  for (size_t i = 0; i < p_.nodes_.size(); i++) {
    while (part != parts_.end() && part->end <= i) ++part;
    const Node &n = p_.nodes_[i];
    if (!runs_in_order(n) || (part != parts_.end() && part->begin <= i)) continue;
    const std::string reason = failures_[i].empty() ? reason_of(n) : failures_[i];
    result += std::string("\n") + n.op->name + ": " +
              (reason.empty() ? "its neighbours are not recorded" : reason);
  }
  return result;
}

std::string Program::device_graph_text() {
  const std::lock_guard<std::mutex> lock(runs_);
  return device_graph_ ? device_graph_->text() : "";
}

}  // namespace plait::graph
