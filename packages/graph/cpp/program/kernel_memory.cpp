// What kernels allocate beside the tensors of a graph: scratch memory, and weights in the layout in
// which a kernel reads them, which it keeps from the second call on (docs/design/0028). It depends
// on shapes, and is measured: each kernel is called with zeros, and square matrices with ones on
// their diagonal, which have an inverse.
#include <algorithm>
#include <cstring>

#include "program/memory_record.hpp"
#include "program/program.hpp"

namespace plait::graph {

namespace {

// The CPU's kernels keep packed weights of so many bytes together (core/cpp/kernel/packed_weight).
constexpr int64_t most_kept_bytes = int64_t(512) << 20;

// The default generator of the CPU is afterwards where it was.
class SameNumbers {
 public:
  SameNumbers() {
    const auto *rng = role<plait_rng>(runtime);
    generator_ = rng->default_generator(rng->ctx);
    if (generator_) offset_ = __atomic_load_n(&generator_->offset, __ATOMIC_RELAXED);
  }
  SameNumbers(const SameNumbers &) = delete;
  SameNumbers &operator=(const SameNumbers &) = delete;
  ~SameNumbers() {
    if (generator_) __atomic_store_n(&generator_->offset, offset_, __ATOMIC_RELAXED);
  }

 private:
  plait_generator *generator_;
  uint64_t offset_ = 0;
};

template <class T>
void add_diagonals(const plait_tensor *t) {
  const int64_t n = t->dl.shape[t->dl.ndim - 1];
  T *begin = static_cast<T *>(t->dl.data);
  for (int64_t i = 0; i < numel(t); i++)
    if (i / n % n == i % n) begin[i] = 1;
}

// Only where elements lie in C order.
void fill(const plait_tensor *t) {
  const int32_t d = t->dl.ndim;
  if (d < 2 || t->dl.shape[d - 1] != t->dl.shape[d - 2] || !is_contiguous(t)) return;
  if (same(t->dl.dtype, dtype::float32)) add_diagonals<float>(t);
  if (same(t->dl.dtype, dtype::float64)) add_diagonals<double>(t);
}

}  // namespace

class Program::KernelMeasure {
 public:
  KernelMeasure(plait_thread *thread, Program *program) : thread_(thread), p_(*program) {}

  void measure_all() {
    p_.is_bound_ = false;  // nodes point to other tensors afterwards
    for (Node &n : p_.joined_) measure(n);
    for (Node &n : p_.nodes_) {
      if (!n.runs || n.group >= 0) continue;
      if (n.regions)
        for (Program *region : {n.regions->first.get(), n.regions->second.get()}) {
          KernelMeasure inner(thread_, region);
          inner.measure_all();
          add(inner);
        }
      else if (is_measurable(n))
        measure(n);
    }
  }
  uint64_t total() const {
    const int64_t later = kept_ > most_kept_bytes ? std::max(first_, later_) : later_;
    return uint64_t(held_ + std::max(first_, std::min(kept_, most_kept_bytes) + later));
  }

 private:
  void add(const KernelMeasure &inner) {
    first_ = std::max(first_, inner.first_);
    later_ = std::max(later_, inner.later_);
    kept_ += inner.kept_;
    held_ = std::max(held_, inner.held_);
  }

  const Memory &memory_of(int32_t value) const {
    return p_.memories_[size_t(p_.values_[size_t(value)].memory)];
  }

  // Not what runs on a device, or whose operands' shapes depend on values; nor the step of an
  // optimizer, whose zeros would take as much memory as the weights do; it needs none of its own.
  bool is_measurable(const Node &n) const {
    bool is_measurable = true;
    uint64_t written = 0;
    const auto see = [&](int32_t v) {
      const Value &value = p_.values_[size_t(v)];
      is_measurable &= value.memory >= 0 && value.type.device.device_type == kDLCPU;
    };
    for (const Slot &slot : n.slots) see(slot.value);
    for (const auto &values : n.results)
      for (const int32_t v : values)
        if (v >= 0 && !n.allocates) see(v);
    p_.each_written(n, [&](int32_t m) {
      if (p_.memories_[size_t(m)].where == Where::weight) written += p_.memories_[size_t(m)].nbytes;
    });
    uint64_t block = uint64_t(1) << 20;
    for (const Block &b : p_.blocks_) block = std::max(block, b.nbytes);
    return is_measurable && written <= block;
  }

  // A tensor of the value's type: of zeros, or of the weight's elements, which the node reads.
  Tensor stand_in(const Value &v, bool is_read_only) {
    int64_t below = 0, above = 0;
    extent(v.type, &below, &above);
    const auto nbytes = uint64_t(std::max<int64_t>(above - below, 1));
    const Memory &m = p_.memories_[size_t(v.memory)];
    const plait_tensor *weight = nullptr;
    if (m.where == Where::weight && is_read_only && nbytes >= 4096)
      weight = p_.weights_[size_t(m.value) - p_.n_inputs()].get();
    const bool is_ours = weight && weight->storage->allocator && !weight->storage->flags;
    Ref<plait_storage> storage;
    if (weight && !is_ours) {
      storage = Ref<plait_storage>::share(weight->storage);
    } else {
      MemoryRecord record;
      if (weight) record.lend(static_cast<char *>(weight->dl.data) + v.offset + below, nbytes);
      check(runtime->storage_new(thread_, v.type.device, nbytes, storage.out()));
      if (!weight) std::memset(storage->data, 0, nbytes);
    }
    char *begin = weight ? static_cast<char *>(weight->dl.data) + v.offset
                         : static_cast<char *>(storage->data) - below;
    Tensor result;
    check(runtime->tensor_on(thread_, storage.get(), begin, v.type.dtype,
                             int32_t(v.type.shape.size()), v.type.shape.data(),
                             v.type.strides.data(), result.out()));
    if (!weight) fill(result.get());
    return result;
  }

  void measure(Node &n) {
    std::vector<int32_t> written;
    p_.each_written(n, [&](int32_t m) { written.push_back(m); });
    std::vector<Tensor> tensors;
    std::vector<plait_storage *> computed;  // others at each run
    bool may_keep = false;
    const auto stand_for = [&](plait_tensor **at, int32_t value) {
      const Value &v = p_.values_[size_t(value)];
      const Memory &m = memory_of(value);
      const bool is_read = std::find(written.begin(), written.end(), v.memory) == written.end();
      tensors.push_back(stand_in(v, is_read));
      *at = tensors.back().get();
      if (m.where == Where::block || m.where == Where::output)
        computed.push_back((*at)->storage);
      else
        may_keep = true;
    };
    for (const Slot &slot : n.slots) stand_for(slot.at, slot.value);
    if (n.form == PLAIT_FUNCTION && !n.allocates)
      for (size_t i = 0; i < n.results.size(); i++) {
        n.out[i].tag = PLAIT_TENSOR;
        stand_for(&n.out[i].u.t, n.results[i][0]);
      }
    p_.set_numbers(n);
    int64_t live = 0, peak = call(n, &live);
    first_ = std::max(first_, peak - (n.allocates ? live : 0));
    if (n.allocates) held_ += live;
    if (may_keep) {
      for (plait_storage *storage : computed) runtime->touched(storage);
      peak = call(n, &live);
    }
    later_ = std::max(later_, peak - live);
    if (!n.allocates) kept_ += live;
  }

  // The most bytes that the call allocates, and those that it keeps, or has in new results. Zeros
  // may be an error to it.
  int64_t call(Node &n, int64_t *live) {
    const MemoryRecord record;
    *live = 0;
    try {
      if (n.allocates)
        call_for_new(n, record, live);
      else
        p_.call_node(thread_, n);
    } catch (const Error &error) {
      if (error.status == PLAIT_MEMORY_ERROR) throw;
      runtime->clear(thread_);
    }
    if (!n.allocates) *live = record.live();
    return record.peak();
  }

  void call_for_new(Node &n, const MemoryRecord &record, int64_t *live) {
    plait_call c{};
    c.size = sizeof c;
    c.n_in = n.op->n_args;
    c.n_out = n.op->n_results;
    c.op = n.op;
    c.in = n.in.data();
    c.out = n.out.data();
    c.thread = thread_;
    c.form = n.form;
    if (n.form == PLAIT_FUNCTION) std::fill(n.out.begin(), n.out.end(), none());
    check(runtime->call(&c));
    *live = record.live();
    if (n.form == PLAIT_FUNCTION)
      for (plait_value &v : n.out) runtime->release_value(&v);
  }

  plait_thread *thread_;
  Program &p_;
  // the most that is allocated during a node, in the first run and in a later one; bytes that are
  // kept from run to run, and to the end of a run
  int64_t first_ = 0, later_ = 0, kept_ = 0, held_ = 0;
};

uint64_t Program::kernel_bytes(plait_thread *thread) {
  const std::lock_guard<std::mutex> lock(runs_);
  if (has_kernel_bytes_) return kernel_bytes_;
  const NoLayers none(thread);
  const SameNumbers same_numbers;
  count_memory();
  KernelMeasure measure(thread, this);
  measure.measure_all();
  // the run's tensors have other sizes than what was freed here
  const auto *allocator = role<plait_allocator>(runtime, kDLCPU);
  if (allocator->trim) allocator->trim(allocator->ctx);
  kernel_bytes_ = measure.total();
  has_kernel_bytes_ = true;
  return kernel_bytes_;
}

}  // namespace plait::graph
