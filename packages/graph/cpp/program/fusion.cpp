// Which nodes form groups, and how a group runs. Of pointwise nodes: for each block of elements all
// its nodes, so that values pass from one to the next in registers (register_code.cpp) or, by
// kernels, in the cache. Behind a convolution: joined_convolution.cpp.
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <numeric>

#include "program/program.hpp"

namespace plait::graph {

namespace {

// Bytes of the operands of a block, which stay in the second-level cache. Larger blocks have fewer
// calls of kernels.
constexpr int64_t block_bytes = 128 << 10;
// One thread runs up to so many elements: kernels do so, and a group.
constexpr int64_t most_elements = 32768;

bool same_place(const TensorType &a, const TensorType &b) {
  return same(a.dtype, b.dtype) && a.shape == b.shape && a.strides == b.strides;
}

int64_t elements_of(const TensorType &t) {
  return std::accumulate(t.shape.begin(), t.shape.end(), int64_t(1), std::multiplies<>());
}

// Whether an element of the result depends on the elements at the same index alone: so say the
// flags, or the rule for parts of tensors, which casts and copies have, too (docs/design/0039).
bool is_elementwise(const plait_op *op) {
  if (op->flags & PLAIT_OP_POINTWISE) return true;
  if (!PLAIT_HAS(plait_op_def, op->def, sharding)) return false;
  return op->def->sharding[0] == 'e' && !std::strchr(op->def->sharding, 'd');
}

// Kernels that read an element before they write it, in any thread; no functions of Python.
bool are_fusable(const plait_entry *kernels) {
  for (const plait_entry *e = kernels; e; e = e->prev)
    if (!e->who || !(e->who->flags & PLAIT_PLUGIN_OVERWRITES)) return false;
  return kernels != nullptr;
}

// Calls the kernel of call `k` on the operands of a worker.
plait_status call_kernel(const Group::Call &call, size_t k, Group::Worker *worker,
                         plait_thread *thread) {
  plait_value in[PLAIT_MAX_ARGS], out = worker->out[k];
  std::copy(worker->in[k].begin(), worker->in[k].end(), in);
  plait_call c{};
  c.size = sizeof c;
  c.n_in = call.op->n_args;
  c.n_out = 1;
  c.op = call.op;
  c.in = in;
  c.out = &out;
  c.thread = thread;
  c.form = call.form;
  c.device = {kDLCPU, 0};
  const plait_error *before = thread->error;
  plait_status s = PLAIT_DECLINE;
  for (const plait_entry *e = call.kernel; e && s == PLAIT_DECLINE; e = e->prev) {
    c.self = e;
    s = e->fn(&c);
  }
  if (s != PLAIT_OK && s != PLAIT_DECLINE && (s > 0 || thread->error == before))
    s = runtime->fail(&c, PLAIT_ERROR, "it failed with status %d and gave no text", s);
  return s;
}

}  // namespace

int64_t fewest_elements = 2048;

bool Group::divide(int64_t most) {
  int64_t behind = 1;
  cut = int64_t(sizes.size());
  while (cut > 0 && behind * sizes[size_t(cut) - 1] <= most) behind *= sizes[size_t(--cut)];
  if (cut == 0) return false;
  cut--;
  const int64_t size = sizes[size_t(cut)];
  rows = std::max<int64_t>(most / behind, 1);
  if (behind == 1 && rows > 64) rows = rows / 64 * 64;
  pieces = (size + rows - 1) / rows;
  blocks = pieces;
  for (int64_t d = 0; d < cut; d++) blocks *= sizes[size_t(d)];
  block_elements = rows * behind;
  return true;
}

void Group::seek(Worker *worker, int64_t block) const {
  const int64_t piece = block % pieces;
  block /= pieces;
  const int64_t begin = piece * rows;
  worker->shape[0] = std::min(rows, sizes[size_t(cut)] - begin);
  for (size_t k = 0; k < operands.size(); k++)
    if (operands[k].place < 0)
      worker->tensors[k].dl.data =
          bases[k] + begin * operands[k].strides[size_t(cut)] * operands[k].itemsize;
  for (int64_t d = cut; d-- > 0 && block;) {
    const int64_t at = block % sizes[size_t(d)];
    block /= sizes[size_t(d)];
    for (size_t k = 0; k < operands.size(); k++)
      if (operands[k].place < 0) {
        char *&data = reinterpret_cast<char *&>(worker->tensors[k].dl.data);
        data += at * operands[k].strides[size_t(d)] * operands[k].itemsize;
      }
  }
}

// Finds groups, once the memories and the lifetimes of all values are known.
class Program::Fuser {
 public:
  explicit Fuser(Program *program) : p_(*program) {}

  void run() {
    for (size_t i = 0; i < p_.nodes_.size(); i++) {
      const Node &n = p_.nodes_[i];
      if (!n.runs) continue;
      if (Group g; p_.join_convolution(i, &g)) {
        end();
        i = size_t(g.last);
        for (const Group::Call &call : g.calls)
          p_.nodes_[size_t(call.node)].group = int32_t(p_.groups_.size());
        p_.groups_.push_back(std::move(g));
      } else if (!fits(n)) {
        end();
        if (fits(n)) add(int32_t(i));  // alone it may begin a group
      } else {
        add(int32_t(i));
      }
    }
    end();
  }

 private:
  const Value &value_of(int32_t v) const { return p_.values_[size_t(v)]; }
  Memory &memory_of(int32_t v) { return p_.memories_[size_t(value_of(v).memory)]; }
  static int32_t target(const Node &n) {
    return n.form == PLAIT_INPLACE ? n.slots[0].value : n.results[0][0];
  }

  bool is_fusable(const Node &n) const {
    if (!n.is_prepared || n.is_constant || n.results.size() != 1) return false;
    if (!is_elementwise(n.op) || (n.op->flags & PLAIT_OP_RANDOM)) return false;
    if (!are_fusable(kernel_of(n.op))) return false;
    const auto is_half = [&](int32_t v) {  // some kernels compute them by other operators
      const DLDataType t = value_of(v).type.dtype;
      return t.bits == 16 && (t.code == kDLFloat || t.code == kDLBfloat);
    };
    if (is_half(target(n))) return false;
    for (const Slot &slot : n.slots)
      if (is_half(slot.value)) return false;
    const TensorType &type = value_of(target(n)).type;
    return elements_of(type) > fewest_elements && !type.shape.empty();
  }

  bool fits(const Node &n) const {
    if (!is_fusable(n)) return false;
    const int32_t to = target(n);
    const Value &t = value_of(to);
    if (!nodes_.empty()) {
      const TensorType &shape = value_of(target(p_.nodes_[size_t(nodes_[0])])).type;
      if (t.type.shape != shape.shape || t.type.strides != shape.strides) return false;
    }
    // what the group writes is used at the same elements alone
    for (const Slot &slot : n.slots) {
      const Value &v = value_of(slot.value);
      for (const int32_t w : written_)
        if (const Value &other = value_of(w);
            other.memory == v.memory &&
            (other.offset != v.offset || !same_place(other.type, v.type)))
          return false;
    }
    if (n.form != PLAIT_INPLACE) return true;
    // a caller who gets an error does not see that a part of it was written
    const Where where = p_.memories_[size_t(t.memory)].where;
    if (where != Where::block && where != Where::output) return false;
    for (const int32_t r : read_) {
      const Value &other = value_of(r);
      if (other.memory == t.memory && (other.offset != t.offset || !same_place(other.type, t.type)))
        return false;
    }
    return true;
  }

  void add(int32_t node) {
    const Node &n = p_.nodes_[size_t(node)];
    nodes_.push_back(node);
    for (const Slot &slot : n.slots) read_.push_back(slot.value);
    written_.push_back(target(n));
  }

  void end() {
    if (nodes_.size() > 1) make();
    nodes_.clear();
    read_.clear();
    written_.clear();
  }

  void make() {
    Group g;
    g.first = nodes_.front();
    g.last = nodes_.back();
    for (const int32_t i : nodes_) {
      const Node &n = p_.nodes_[size_t(i)];
      Group::Call call;
      call.node = i;
      for (uint16_t a = 0; a < n.op->n_args; a++)
        for (const Slot &slot : n.slots)
          if (slot.at == &n.in[a].u.t) call.in.emplace_back(a, operand(&g, slot.value));
      call.out = operand(&g, target(n));
      call.op = n.op;
      call.form = n.form == PLAIT_FUNCTION ? uint32_t(PLAIT_OUT) : n.form;
      g.calls.push_back(std::move(call));
    }
    if (!lay_out(&g)) return;
    for (const int32_t i : nodes_) p_.nodes_[size_t(i)].group = int32_t(p_.groups_.size());
    keep_in_scratch(g);
    p_.code_group(&g);
    extend_lifetimes(g);
    p_.groups_.push_back(std::move(g));
  }

  int32_t operand(Group *g, int32_t value) const {
    for (size_t k = 0; k < g->operands.size(); k++) {
      const Value &v = value_of(value), &other = value_of(g->operands[k].value);
      if (other.memory == v.memory && other.offset == v.offset && same_place(other.type, v.type))
        return int32_t(k);
    }
    Group::Operand o;
    o.value = value;
    o.itemsize = itemsize(value_of(value).type.dtype);
    g->operands.push_back(std::move(o));
    return int32_t(g->operands.size()) - 1;
  }

  // The dimensions, in the order in which the results lie in memory; some are merged.
  bool lay_out(Group *g) {
    const TensorType &type = value_of(g->operands[size_t(g->calls[0].out)].value).type;
    std::vector<size_t> order;
    for (size_t d = 0; d < type.shape.size(); d++)
      if (type.shape[d] > 1) order.push_back(d);
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return std::abs(type.strides[a]) > std::abs(type.strides[b]);
    });
    for (Group::Operand &o : g->operands) {
      const TensorType &t = value_of(o.value).type;
      const size_t lead = type.shape.size() - t.shape.size();
      for (const size_t d : order)
        o.strides.push_back(d < lead || t.shape[d - lead] == 1 ? 0 : t.strides[d - lead]);
    }
    for (const size_t d : order) g->sizes.push_back(type.shape[d]);
    for (size_t d = g->sizes.size(); d-- > 1;) {
      const bool merges = std::all_of(
          g->operands.begin(), g->operands.end(),
          [&](const Group::Operand &o) { return o.strides[d - 1] == o.strides[d] * g->sizes[d]; });
      if (!merges) continue;
      g->sizes[d - 1] *= g->sizes[d];
      g->sizes.erase(g->sizes.begin() + ptrdiff_t(d));
      for (Group::Operand &o : g->operands) o.strides.erase(o.strides.begin() + ptrdiff_t(d) - 1);
    }
    place(g);
    return divide(g);
  }

  bool divide(Group *g) {
    int64_t bytes = 0, widest = 1;
    for (const Group::Operand &o : g->operands) {
      widest = std::max(widest, o.itemsize);
      if (o.place < 0 && !o.strides.empty() && o.strides.back()) bytes += o.itemsize;
    }
    bytes += widest * g->places;
    int64_t most = std::min(block_bytes / bytes / 64 * 64, most_elements);
    if (most < fewest_elements || fewest_elements < 64) most = fewest_elements;
    if (!g->divide(most)) return false;
    g->place_bytes = (g->block_elements * widest + 63) / 64 * 64;
    for (const Group::Operand &o : g->operands) {
      std::vector<int64_t> strides(o.strides.begin() + g->cut, o.strides.end());
      if (o.place >= 0) {
        int64_t stride = 1;
        for (size_t d = strides.size(); d-- > 0;) {
          strides[d] = stride;
          stride *= g->sizes[size_t(g->cut) + d];
        }
      }
      g->block_strides.push_back(std::move(strides));
    }
    return true;
  }

  // Whether no node outside of the group uses the operand's memory.
  bool is_internal(const Group &g, int32_t operand) {
    const Memory &m = memory_of(g.operands[size_t(operand)].value);
    return m.where == Where::block && m.first >= g.first && m.last <= g.last;
  }

  // Gives places in the memory of a thread; one is given again once its value was used last.
  void place(Group *g) {
    std::vector<size_t> last(g->operands.size());
    for (size_t k = 0; k < g->calls.size(); k++) {
      for (const auto &[argument, o] : g->calls[k].in) last[size_t(o)] = k;
      last[size_t(g->calls[k].out)] = k;
    }
    std::vector<int32_t> free;
    for (size_t k = 0; k < g->calls.size(); k++) {
      const Group::Call &call = g->calls[k];
      Group::Operand &out = g->operands[size_t(call.out)];
      std::vector<int32_t> dying;
      for (const auto &[argument, o] : call.in) {
        const int32_t at = g->operands[size_t(o)].place;
        if (at >= 0 && last[size_t(o)] == k &&
            std::find(dying.begin(), dying.end(), at) == dying.end())
          dying.push_back(at);
      }
      if (out.place < 0 && is_internal(*g, call.out)) {
        const auto over = std::find_if(call.in.begin(), call.in.end(), [&](const auto &in) {
          const Group::Operand &o = g->operands[size_t(in.second)];
          return o.place >= 0 && last[size_t(in.second)] == k &&
                 (call.op->flags & PLAIT_OP_POINTWISE) &&
                 same(value_of(o.value).type.dtype, value_of(out.value).type.dtype);
        });
        if (over != call.in.end()) {
          out.place = g->operands[size_t(over->second)].place;
          dying.erase(std::find(dying.begin(), dying.end(), out.place));
        } else if (!free.empty()) {
          out.place = free.back();
          free.pop_back();
        } else {
          out.place = g->places++;
        }
      }
      free.insert(free.end(), dying.begin(), dying.end());
    }
  }

  void keep_in_scratch(const Group &g) {
    for (const Group::Operand &o : g.operands)
      if (o.place >= 0) memory_of(o.value).where = Where::scratch;
  }

  // What the group uses lives as long as all of it runs.
  void extend_lifetimes(const Group &g) {
    for (const Group::Operand &o : g.operands) {
      Memory &m = memory_of(o.value);
      if (m.first >= g.first) m.first = g.first;
      if (m.first <= g.last && m.last >= g.first && m.last < g.last) m.last = g.last;
    }
  }

  Program &p_;
  std::vector<int32_t> nodes_, read_, written_;
};

void Program::fuse() {
  for (const Memory &m : memories_)  // a device that records the nodes runs each by itself
    if (m.device.device_type != kDLCPU) return;
  Fuser(this).run();
}

// The memory of an operand that nobody reads behind the group, and that a result can have: the
// group writes to it when it has read the operand for the last time. -1: there is none.
int32_t Program::overwritten_by(const Group &g, int32_t memory) const {
  if (g.joined >= 0) return -1;  // its kernel reads operands after it stored results
  const auto is_of = [&](int32_t operand, int32_t m) {
    return values_[size_t(g.operands[size_t(operand)].value)].memory == m;
  };
  size_t first = 0;  // the first call that writes to the result
  while (first < g.calls.size() && !is_of(g.calls[first].out, memory)) first++;
  if (first == g.calls.size()) return -1;
  const Value &r = values_[size_t(g.operands[size_t(g.calls[first].out)].value)];
  const Memory &result = memories_[size_t(memory)];
  for (size_t k = 0; k < g.operands.size(); k++) {
    const Value &v = values_[size_t(g.operands[k].value)];
    const Memory &m = memories_[size_t(v.memory)];
    if (m.where != Where::block || m.last != g.last || m.first >= g.first) continue;
    if (v.offset || r.offset || m.nbytes != result.nbytes || !same_place(v.type, r.type)) continue;
    bool is_free = same(m.device, result.device);
    for (size_t j = 0; j < g.operands.size(); j++)
      is_free &= j == k || !is_of(int32_t(j), v.memory);
    for (size_t c = 0; c < g.calls.size(); c++) {
      for (const auto &[argument, o] : g.calls[c].in) is_free &= size_t(o) != k || c <= first;
      is_free &= size_t(g.calls[c].out) != k || c < first;
    }
    is_free &= (g.calls[first].op->flags & PLAIT_OP_POINTWISE) != 0;
    if (is_free) return v.memory;
  }
  return -1;
}

std::vector<std::vector<int32_t>> Program::groups() const {
  std::vector<std::vector<int32_t>> result;
  for (const Group &g : groups_) {
    result.emplace_back();
    for (const Group::Call &call : g.calls) result.back().push_back(call.node);
  }
  return result;
}

namespace {

// Whether no kernel declines: each is called once, on one element.
bool are_served(Group *g, plait_thread *thread) {
  Group::Worker &worker = g->workers[0];
  alignas(64) char one[64] = {};
  const std::vector<plait_tensor> tensors = worker.tensors;
  const std::vector<int64_t> shape = worker.shape;
  worker.shape.assign(shape.size(), 1);
  bool result = true;
  for (plait_tensor &t : worker.tensors) t.dl.data = one, t.dl.shape = worker.shape.data();
  for (size_t k = 0; k < g->calls.size(); k++) {
    const plait_status s = call_kernel(g->calls[k], k, &worker, thread);
    if (s < 0) runtime->clear(thread);
    result &= s != PLAIT_DECLINE;
  }
  std::copy(shape.begin(), shape.end(), worker.shape.begin());
  std::copy(tensors.begin(), tensors.end(), worker.tensors.begin());
  return result;
}

}  // namespace

// Makes what runs of groups need: memory for each thread, and what its calls point to.
void Program::bind_groups(plait_thread *thread) {
  const plait_executor *executor = role<plait_executor>(runtime);
  const size_t width = groups_.empty() ? 0 : std::max<uint32_t>(executor->width(executor->ctx), 1);
  worker_bytes_ = 0;
  for (const Group &g : groups_) worker_bytes_ = std::max(worker_bytes_, g.scratch_bytes());
  scratch_ = {};
  if (width && worker_bytes_)
    check(runtime->storage_new(thread, {kDLCPU, 0}, width * worker_bytes_, scratch_.out()));
  for (Group &g : groups_) {
    for (Group::Call &call : g.calls) call.kernel = kernel_of(nodes_[size_t(call.node)].op);
    if ((g.is_served = g.joined >= 0)) continue;
    g.workers.assign(width, {});
    g.bases.resize(g.operands.size());
    for (size_t w = 0; w < width; w++) {
      Group::Worker &worker = g.workers[w];
      worker.shape.assign(g.sizes.begin() + g.cut, g.sizes.end());
      worker.tensors.resize(g.operands.size());
      for (size_t k = 0; k < g.operands.size(); k++) {
        plait_tensor &t = worker.tensors[k];
        const Group::Operand &o = g.operands[k];
        t = {};
        t.o.refs = 1;
        t.dl.device = {kDLCPU, 0};
        t.dl.dtype = values_[size_t(o.value)].type.dtype;
        t.dl.ndim = int32_t(worker.shape.size());
        t.dl.shape = worker.shape.data();
        t.dl.strides = const_cast<int64_t *>(g.block_strides[k].data());
        t.storage = scratch_.get();
        if (o.place >= 0)
          t.dl.data = static_cast<char *>(scratch_->data) + w * worker_bytes_ +
                      size_t(o.place) * size_t(g.place_bytes);
      }
      for (const Group::Call &call : g.calls) {
        const Node &n = nodes_[size_t(call.node)];
        worker.in.push_back(n.in);
        for (const auto &[argument, o] : call.in)
          worker.in.back()[argument].u.t = &worker.tensors[size_t(o)];
        worker.out.push_back(value(&worker.tensors[size_t(call.out)]));
      }
    }
    g.bind_runs();
    g.is_served = are_served(&g, thread);
  }
}

namespace {

// One run of a group: its threads take blocks until there are none.
struct BlockRun {
  Group *group;
  int64_t step;  // blocks that a thread takes at a time
  std::atomic<int64_t> next{0};
  std::atomic<plait_error *> error{nullptr};  // the first one, owned
  std::atomic<plait_status> status{PLAIT_OK};

  void fail(plait_thread *thread, plait_status s) {
    plait_error *none = nullptr;
    if (error.compare_exchange_strong(none, thread->error)) {
      thread->error = nullptr;
      status.store(s < 0 ? s : PLAIT_ERROR);
    } else {
      runtime->clear(thread);
    }
    next.store(group->blocks);
  }

  void work(size_t index) {
    plait_thread *thread = runtime->thread();
    Group::Worker &worker = group->workers[index];
    while (true) {
      const int64_t begin = next.fetch_add(step), end = std::min(begin + step, group->blocks);
      if (begin >= end) return;
      for (int64_t block = begin; block < end; block++) {
        group->seek(&worker, block);
        size_t run = 0;
        for (size_t k = 0; k < group->calls.size(); k++) {
          while (run < group->runs.size() && group->runs[run].end <= k) run++;
          if (run < group->runs.size() && group->runs[run].begin == k && group->runs[run].table) {
            group->run_code(run, &worker);
            k = group->runs[run].end - 1;
            continue;
          }
          if (const plait_status s = call_kernel(group->calls[k], k, &worker, thread);
              __builtin_expect(s != PLAIT_OK, 0))
            return fail(thread, s);
        }
      }
    }
  }
};

}  // namespace

void Program::run_group(plait_thread *thread, Group &g, bool is_prepared,
                        const Observer &observer) {
  bool is_same = is_prepared && g.is_served && !observer;
  for (const Group::Call &call : g.calls) is_same = is_same && kernel_of(call.op) == call.kernel;
  if (!is_same) return run_by_nodes(thread, g, is_prepared, observer);
  g.joined >= 0 ? call_prepared(thread, joined_[size_t(g.joined)]) : run_blocks(thread, g);
}

void Program::run_blocks(plait_thread *thread, Group &g) {
  const plait_executor *executor = role<plait_executor>(runtime);
  const uint64_t threads = std::max<uint32_t>(executor->width(executor->ctx), 1);
  if (threads > g.workers.size()) bind_groups(thread);
  const bool is_small = g.blocks * g.block_elements <= most_elements;
  const uint64_t width = is_small ? 1 : std::min(threads, uint64_t(g.blocks));
  BlockRun run;
  run.group = &g;
  run.step = std::max<int64_t>(g.blocks / int64_t(8 * width), 1);
  for (size_t k = 0; k < g.operands.size(); k++) {
    const Group::Operand &o = g.operands[k];
    if (o.place >= 0) continue;
    const Tensor &t = tensors_[size_t(o.value)];
    g.bases[k] = static_cast<char *>(t->dl.data);
    for (Group::Worker &worker : g.workers) worker.tensors[k].storage = t->storage;
  }
  if (width < 2)
    run.work(0);
  else
    executor->parallel(
        executor->ctx, width,
        [](void *arg, uint64_t i) { static_cast<BlockRun *>(arg)->work(size_t(i)); }, &run);
  if (const plait_status s = run.status.load(); s < 0) {
    runtime->clear(thread);
    thread->error = run.error.load();
    throw Error(s);
  }
  for (const Group::Call &call : g.calls)
    if (g.operands[size_t(call.out)].place < 0)
      runtime->touched(tensors_[size_t(g.operands[size_t(call.out)].value)]->storage);
}

// One node after the other, as an observer sees it; values of scratch memory get memory for that.
void Program::run_by_nodes(plait_thread *thread, Group &g, bool is_prepared,
                           const Observer &observer) {
  std::unordered_map<int32_t, Ref<plait_storage>> storages;  // by memory
  const auto make = [&](int32_t value) {
    const Value &v = values_[size_t(value)];
    const Memory &m = memories_[size_t(v.memory)];
    if (m.where != Where::scratch || tensors_[size_t(value)]) return;
    Ref<plait_storage> &storage = storages[v.memory];
    if (!storage) check(runtime->storage_new(thread, m.device, m.nbytes, storage.out()));
    tensors_[size_t(value)] =
        tensor_at(thread, v, storage.get(), static_cast<char *>(storage->data));
  };
  const auto forget = [&] {
    for (const Group::Call &call : g.calls)
      for (const Slot &slot : nodes_[size_t(call.node)].slots) forget_scratch(slot.value);
    for (const Group::Call &call : g.calls)
      for (const auto &values : nodes_[size_t(call.node)].results)
        for (const int32_t v : values)
          if (v >= 0) forget_scratch(v);
  };
  try {
    for (const Group::Call &call : g.calls) {
      Node &n = nodes_[size_t(call.node)];
      for (const Slot &slot : n.slots) {
        make(slot.value);
        *slot.at = tensors_[size_t(slot.value)].get();
      }
      if (n.form == PLAIT_FUNCTION) {
        make(n.results[0][0]);
        n.out[0].tag = PLAIT_TENSOR;
        n.out[0].u.t = tensors_[size_t(n.results[0][0])].get();
      }
      is_prepared ? call_prepared(thread, n) : call_node(thread, n);
      if (observer) observer(size_t(call.node));
    }
  } catch (...) {
    forget();
    throw;
  }
  forget();
}

// Whether it has a tensor only while the nodes of its group run one by one.
bool Program::is_scratch(int32_t value) const {
  const int32_t m = values_[size_t(value)].memory;
  return m >= 0 && memories_[size_t(m)].where == Where::scratch;
}

void Program::forget_scratch(int32_t value) {
  if (is_scratch(value)) tensors_[size_t(value)] = Tensor();
}

}  // namespace plait::graph
