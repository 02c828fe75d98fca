// The shapes of all values, which memory they lie in, and where in the block that is.
//
// Each node is called on the device `meta`, where a call computes shapes alone. The memory of a
// value there has an address that is a number only, so that views of it are recognised.
#include <algorithm>
#include <map>
#include <set>

#include "program/call_limit.hpp"
#include "program/control_flow.hpp"
#include "program/program.hpp"

namespace plait::graph {

namespace {

constexpr uint64_t alignment = 64;

// Operator calls that may find the shapes of a graph: decompositions make some for each of their
// steps, and one for each of many results, which have names in the graph.
constexpr uint64_t most_calls_of_a_graph = uint64_t(1) << 17, most_calls_of_a_node = 256;

uint64_t aligned(uint64_t n) { return (n + alignment - 1) / alignment * alignment; }

// Memory of a block: gives the smallest free part that is large enough, and grows at its end.
class Places {
 public:
  uint64_t take(uint64_t nbytes) {
    const auto fit = by_size_.lower_bound({nbytes, 0});
    if (fit == by_size_.end()) return grow(nbytes);
    const auto [size, offset] = *fit;
    remove(offset, size);
    if (size > nbytes) add(offset + nbytes, size - nbytes);
    return offset;
  }
  void give_back(uint64_t offset, uint64_t nbytes) {
    auto next = by_offset_.lower_bound(offset);
    if (next != by_offset_.end() && offset + nbytes == next->first) {
      nbytes += next->second;
      remove(next->first, next->second);
    }
    auto before = by_offset_.lower_bound(offset);
    if (before != by_offset_.begin() &&
        std::prev(before)->first + std::prev(before)->second == offset) {
      --before;
      const auto [begin, size] = *before;
      remove(begin, size);
      offset = begin;
      nbytes += size;
    }
    add(offset, nbytes);
  }
  uint64_t end() const { return end_; }

 private:
  uint64_t grow(uint64_t nbytes) {
    uint64_t offset = end_;
    if (!by_offset_.empty()) {  // the last free part is the begin of it
      const auto [begin, size] = *std::prev(by_offset_.end());
      if (begin + size == end_) {
        remove(begin, size);
        offset = begin;
      }
    }
    end_ = offset + nbytes;
    return offset;
  }
  void add(uint64_t offset, uint64_t size) {
    by_offset_.emplace(offset, size);
    by_size_.emplace(size, offset);
  }
  void remove(uint64_t offset, uint64_t size) {
    by_offset_.erase(offset);
    by_size_.erase({size, offset});
  }
  std::map<uint64_t, uint64_t> by_offset_;
  std::set<std::pair<uint64_t, uint64_t>> by_size_;
  uint64_t end_ = 0;
};

TensorType type_of(const plait_tensor *t, DLDevice device) {
  TensorType type;
  type.dtype = t->dl.dtype;
  type.device = device;
  type.shape.assign(t->dl.shape, t->dl.shape + t->dl.ndim);
  type.strides.assign(t->dl.strides, t->dl.strides + t->dl.ndim);
  return type;
}

void make_dense_in_order(TensorType *t) {
  int64_t stride = 1;
  t->strides.resize(t->shape.size());
  for (size_t i = t->shape.size(); i-- > 0;) {
    t->strides[i] = stride;
    stride *= std::max<int64_t>(t->shape[i], 1);
  }
}

// New memory is as large as its elements: what a shape function made of a larger one is dense.
// Without elements any strides are.
void make_dense(TensorType *t) {
  int64_t elements = 1, last = 0;
  bool is_dense = true;
  for (size_t i = 0; i < t->shape.size(); i++) {
    elements *= t->shape[i];
    is_dense &= t->strides[i] >= 0;
    last += (t->shape[i] - 1) * t->strides[i];
  }
  if (is_dense && (elements == 0 || last == elements - 1)) return;
  make_dense_in_order(t);
}

bool same_place(const TensorType &a, const TensorType &b) {
  return same(a.dtype, b.dtype) && a.shape == b.shape && a.strides == b.strides;
}

}  // namespace

class Program::Planner {
 public:
  Planner(Program *program, plait_thread *thread, CallLimit *limit)
      : p_(*program), thread_(thread), limit_(*limit), metas_(p_.values_.size()) {}

  void infer() {
    for (size_t i = 0; i < p_.values_.size(); i++)  // inputs and weights
      if (p_.values_[i].memory >= 0) place(int32_t(i), p_.values_[i].memory);
    for (size_t i = 0; i < p_.nodes_.size(); i++) infer_node(int32_t(i));
  }

  // Copies the outputs of a loop's body that are views of carried values, or another one of them:
  // outputs are written to where these lie.
  void separate_outputs(size_t n_carried) {
    for (size_t i = 0; i < p_.outputs_.size(); i++) {
      const int32_t v = p_.outputs_[i];
      const Memory *m = memory_of(v);
      if (size_t(v) != i && m && m->where == Where::input && size_t(m->value) < n_carried)
        p_.outputs_[i] = add_copy(v);
    }
  }

  // The first inputs, `n_varying`, are others in each run.
  void finish(size_t n_varying) {
    find_constants(n_varying);
    note_versions();
    if (!p_.is_region_) p_.elide_copies();
    find_lifetimes();
    if (!p_.is_region_) p_.fuse();
    place_blocks();
  }

 private:
  // How often the memory of each output was written to after it was made, as eager calls count it.
  void note_versions() {
    for (const int32_t v : p_.outputs_) {
      const Tensor &meta = metas_[size_t(v)];
      p_.output_versions_.push_back(meta ? meta->storage->version : 0);
    }
  }

  // Which nodes compute the same at each run, as long as nobody writes to the weights.
  void find_constants(size_t n_varying) {
    std::vector<bool> varies(p_.memories_.size());
    for (size_t i = 0; i < varies.size(); i++) {
      const Memory &m = p_.memories_[i];
      varies[i] = m.where == Where::input && size_t(m.value) < n_varying;
    }
    for (const Node &n : p_.nodes_)
      p_.each_written(n, [&](int32_t m) { varies[size_t(m)] = true; });
    p_.is_written_.resize(p_.n_weights());
    p_.is_written_input_.resize(p_.n_inputs());
    for (size_t i = 0; i < p_.n_weights(); i++)
      p_.is_written_[i] = varies[size_t(p_.values_[p_.n_inputs() + i].memory)];
    for (const Node &n : p_.nodes_)
      p_.each_written(n, [&](int32_t m) {
        Memory &memory = p_.memories_[size_t(m)];
        memory.is_written = true;
        if (memory.where != Where::input) return;
        p_.writes_inputs_ = true;
        p_.is_written_input_[size_t(memory.value)] = true;
      });
    for (const int32_t v : p_.outputs_)  // the caller may write to it
      if (const int32_t m = p_.values_[size_t(v)].memory; m >= 0) varies[size_t(m)] = true;
    for (Node &n : p_.nodes_) {
      if (!n.runs) continue;
      bool is_constant = !n.allocates && n.form == PLAIT_FUNCTION && !n.results.empty() &&
                         !(n.op->flags & PLAIT_OP_RANDOM) && n.numbers.empty() && !n.regions;
      const auto see = [&](int32_t value) {
        const int32_t m = p_.values_[size_t(value)].memory;
        is_constant &= m >= 0 && !varies[size_t(m)];
      };
      for (const Slot &slot : n.slots) see(slot.value);
      for (const auto &values : n.results)
        for (const int32_t v : values)
          if (v >= 0) see(v);
      n.is_constant = is_constant;
      p_.has_constants_ |= is_constant;
      for (const auto &values : n.results)
        for (const int32_t v : values) {
          if (v < 0 || p_.values_[size_t(v)].memory < 0) continue;
          if (is_constant)
            memory_of(v)->where = Where::constant;
          else
            varies[size_t(p_.values_[size_t(v)].memory)] = true;
        }
    }
  }

  // Which memories the outputs keep, and how long others are used.
  void find_lifetimes() {
    for (size_t i = 0; i < p_.nodes_.size(); i++) {
      const Node &n = p_.nodes_[i];
      if (!n.runs) continue;
      for (const Slot &slot : n.slots) use(slot.value, int32_t(i));
      for (const auto &values : n.results)
        for (const int32_t v : values)
          if (v >= 0) use(v, int32_t(i));
      if (n.regions)
        for (const int32_t m : n.regions->blocks)
          p_.memories_[size_t(m)].first = p_.memories_[size_t(m)].last = int32_t(i);
    }
    std::vector<bool> is_returned(p_.values_.size());
    for (const int32_t v : p_.outputs_) {
      const bool is_own = size_t(v) >= p_.n_inputs() + p_.n_weights() && !is_returned[size_t(v)];
      p_.is_alias_.push_back(!is_own);
      is_returned[size_t(v)] = true;
    }
    for (const int32_t v : p_.outputs_) {
      Memory *m = memory_of(v);
      if (!m || m->where != Where::block) continue;
      if (p_.is_region_)
        m->last = int32_t(p_.nodes_.size()) - 1;
      else
        m->where = Where::output;
    }
  }

  void place_blocks() {
    std::vector<std::vector<int32_t>> begins(p_.nodes_.size()), ends(p_.nodes_.size());
    for (size_t i = 0; i < p_.memories_.size(); i++) {
      const Memory &m = p_.memories_[i];
      if (m.where != Where::block || m.first < 0) continue;
      begins[size_t(m.first)].push_back(int32_t(i));
      ends[size_t(m.last)].push_back(int32_t(i));
    }
    std::vector<Places> places;
    std::vector<bool> is_taken_over(p_.memories_.size());
    for (size_t i = 0; i < p_.nodes_.size(); i++) {
      for (const int32_t at : begins[i]) {
        Memory &m = p_.memories_[size_t(at)];
        const size_t block = block_of(m.device);
        places.resize(p_.blocks_.size());
        const int32_t group = p_.nodes_[i].group;
        const int32_t before = group >= 0 ? p_.overwritten_by(p_.groups_[size_t(group)], at)
                               : begins[i].size() == 1 ? overwritten(p_.nodes_[i], at, int32_t(i))
                                                       : -1;
        if (before >= 0 && !is_taken_over[size_t(before)]) {
          m.offset = p_.memories_[size_t(before)].offset;
          is_taken_over[size_t(before)] = true;
        } else {
          m.offset = places[block].take(aligned(m.nbytes));
        }
      }
      for (const int32_t at : ends[i]) {
        const Memory &m = p_.memories_[size_t(at)];
        if (!is_taken_over[size_t(at)])
          places[block_of(m.device)].give_back(m.offset, aligned(m.nbytes));
      }
    }
    for (size_t b = 0; b < places.size(); b++) p_.blocks_[b].nbytes = places[b].end();
  }

  Memory *memory_of(int32_t value) {
    const int32_t m = p_.values_[size_t(value)].memory;
    return m < 0 ? nullptr : &p_.memories_[size_t(m)];
  }
  void use(int32_t value, int32_t node) {
    Memory *m = memory_of(value);
    if (!m) return;
    if (m->first < 0) m->first = node;
    m->last = std::max(m->last, node);
  }
  size_t block_of(DLDevice device) {
    for (size_t i = 0; i < p_.blocks_.size(); i++)
      if (same(p_.blocks_[i].device, device)) return i;
    p_.blocks_.push_back({device, 0, {}});
    return p_.blocks_.size() - 1;
  }

  // The memory of an operand that nobody reads behind a pointwise node, and that the result can
  // have: each element is written when its operands were read. -1: there is none.
  int32_t overwritten(const Node &n, int32_t result, int32_t node) {
    if (!(n.op->flags & PLAIT_OP_POINTWISE) || n.form != PLAIT_FUNCTION || n.allocates) return -1;
    if (n.results.size() != 1 || n.results[0].size() != 1 || n.results[0][0] < 0) return -1;
    const Value &r = p_.values_[size_t(n.results[0][0])];
    if (r.memory != result) return -1;
    for (const Slot &slot : n.slots) {
      const Value &v = p_.values_[size_t(slot.value)];
      const Memory *m = memory_of(slot.value);
      if (!m || m->where != Where::block || m->last != node || m->first == node) continue;
      if (v.offset || m->nbytes != p_.memories_[size_t(result)].nbytes) continue;
      if (!same_place(v.type, r.type) || !same(m->device, r.type.device)) continue;
      const bool is_alone = std::all_of(n.slots.begin(), n.slots.end(), [&](const Slot &other) {
        const Value &o = p_.values_[size_t(other.value)];
        return o.memory != v.memory || (o.offset == v.offset && same_place(o.type, v.type));
      });
      if (is_alone) return v.memory;
    }
    return -1;
  }

  // Makes the meta tensor of a value whose type and memory are known.
  void place(int32_t value, int32_t memory) {
    Value &v = p_.values_[size_t(value)];
    v.memory = memory;
    plait_storage *storage = nullptr;
    const Memory &m = p_.memories_[size_t(memory)];
    const uint64_t from = next_address_ - uint64_t(m.begin);
    next_address_ += aligned(m.nbytes) + alignment;
    constexpr uint64_t most = sizeof(void *) == 8 ? uint64_t(1) << 62 : UINTPTR_MAX;
    if (next_address_ > most)
      check(runtime->raise(thread_, PLAIT_MEMORY_ERROR, "graph",
                           "its values have more than %llu bytes together",
                           static_cast<unsigned long long>(most)));
    check(runtime->storage_wrap(thread_, reinterpret_cast<void *>(from), 0, {PLAIT_META, 0}, 0,
                                nullptr, nullptr, &storage));
    const auto owned = Ref<plait_storage>::steal(storage);
    memory_by_storage_.emplace(storage, std::make_pair(memory, from));
    check(runtime->tensor_on(thread_, storage, reinterpret_cast<void *>(from), v.type.dtype,
                             int32_t(v.type.shape.size()), v.type.shape.data(),
                             v.type.strides.data(), metas_[size_t(value)].out()));
  }

  void infer_node(int32_t index) {
    Node &n = p_.nodes_[size_t(index)];
    limit_.begin_node(size_t(index), n.op->name);
    bool is_known = true;
    DLDevice device = thread_->device;
    bool has_device = false;
    for (const Slot &slot : n.slots) {
      const Value &v = p_.values_[size_t(slot.value)];
      is_known &= v.memory >= 0;
      *slot.at = metas_[size_t(slot.value)].get();
      if (v.memory >= 0 && !has_device) device = v.type.device, has_device = true;
    }
    if (n.regions) return infer_regions(n);
    std::vector<plait_value> in = n.in;
    for (plait_value &v : in)
      if (v.tag == PLAIT_DEVICE) device = v.u.device, v = value(DLDevice{PLAIT_META, 0});
    if (!is_known || !call_on_meta(n, in)) {
      n.allocates = true;  // so do the nodes that use its results
      return;
    }
    take_results(&n, device);
    n.is_prepared = p_.is_preparable(thread_, n, in);
  }

  template <class... A>
  [[noreturn]] void refuse(const Node &n, const char *format, A... arguments) {
    check(runtime->raise(thread_, PLAIT_VALUE_ERROR, n.op->name, format, arguments...));
    throw Error(PLAIT_VALUE_ERROR);
  }

  static std::string describe(const TensorType &t) {
    std::string result =
        std::string(plait::name(t.dtype)) + text(t.shape.data(), int64_t(t.shape.size()));
    if (t.device.device_type != kDLCPU) result += " on " + device_text(runtime, t.device);
    return result;
  }

  // Plans the regions of a node and checks that they fit it and each other.
  void infer_regions(Node &n) {
    Regions &r = *n.regions;
    const size_t n_results = n.results[0].size();
    r.first->is_region_ = r.second->is_region_ = true;
    if (r.is_loop) {
      r.first->plan_round(thread_, &limit_, n_results, false);
      r.second->plan_round(thread_, &limit_, n_results, true);
    } else {
      r.first->plan_region(thread_, &limit_);
      r.second->plan_region(thread_, &limit_);
    }
    if (r.is_loop && n.in[0].n != n_results)
      refuse(n, "it has %u carried values and %zu results", n.in[0].n, n_results);
    const size_t first_operand = r.is_loop ? 0 : 1;
    const char *names[] = {r.is_loop ? "the condition" : "the first branch",
                           r.is_loop ? "the body" : "the second branch"};
    if (!r.is_loop) check_predicate(n, p_.values_[size_t(n.slots[0].value)]);
    for (const Program *region : {r.first.get(), r.second.get()}) {
      const char *name = names[region == r.second.get()];
      const size_t n_operands = n.slots.size() - first_operand;
      if (region->n_inputs() != n_operands)
        refuse(n, "%s has %zu inputs; the node has %zu operands", name, region->n_inputs(),
               n_operands);
      for (size_t i = 0; i < n_operands; i++)
        check_operand(n, *region, name, i, p_.values_[size_t(n.slots[first_operand + i].value)]);
      const bool is_condition = r.is_loop && region == r.first.get();
      const size_t required = is_condition ? 1 : n_results;
      if (region->outputs_.size() != required)
        refuse(n, "%s has %zu outputs; %zu are required", name, region->outputs_.size(), required);
      for (size_t i = 0; i < required; i++)
        if (!region->output_type(i))
          refuse(n, "the shape of result %zu of %s depends on values; that is not supported", i,
                 name);
      if (is_condition) check_predicate(n, region->values_[size_t(region->outputs_[0])]);
    }
    for (size_t i = 0; i < n_results; i++) {
      const TensorType &type = r.is_loop ? r.first->input_type(i) : *r.first->output_type(i);
      check_same_result(n, i, type, *r.second->output_type(i));
      new_result(n.results[0][i], type);
    }
    for (const Program *region : {r.first.get(), r.second.get()})
      for (const Block &block : region->blocks_) add_block(&r, block);
  }

  // Reserves memory for a block of a region: one region of a node runs at a time.
  void add_block(Regions *r, const Block &block) {
    for (const int32_t i : r->blocks) {
      Memory &m = p_.memories_[size_t(i)];
      if (!same(m.device, block.device)) continue;
      m.nbytes = std::max(m.nbytes, block.nbytes);
      return;
    }
    r->blocks.push_back(int32_t(p_.memories_.size()));
    p_.memories_.push_back({Where::block, -1, block.device, block.nbytes});
  }

  void check_predicate(const Node &n, const Value &v) {
    if (v.memory >= 0 && (!same(v.type.dtype, dtype::bool_) || elements(v.type) != 1))
      refuse(n, "the predicate must be a bool with one element, got %s", describe(v.type).c_str());
  }

  static int64_t elements(const TensorType &t) {
    int64_t n = 1;
    for (const int64_t size : t.shape) n *= size;
    return n;
  }

  void check_operand(const Node &n, const Program &region, const char *name, size_t i,
                     const Value &operand) {
    const TensorType &type = region.input_type(i);
    const bool is_carried = n.regions->is_loop && i < n.results[0].size();
    if (operand.memory >= 0 && !same_kind(operand.type, type))
      refuse(n, "operand %zu is %s; input %zu of %s is %s", i, describe(operand.type).c_str(), i,
             name, describe(type).c_str());
    TensorType dense = type;
    make_dense_in_order(&dense);
    if (is_carried && type.strides != dense.strides)
      refuse(n, "input %zu of %s must have the strides of C order, as it is carried", i, name);
    if (region.writes_input(i) && !(is_carried && &region == n.regions->second.get()))
      refuse(n, "%s writes to its input %zu; only the body of a loop may write, to carried values",
             name, i);
  }

  static bool same_kind(const TensorType &a, const TensorType &b) {
    return same(a.dtype, b.dtype) && a.shape == b.shape && same(a.device, b.device);
  }

  void check_same_result(const Node &n, size_t i, const TensorType &a, const TensorType &b) {
    if (same_kind(a, b)) return;
    const bool is_loop = n.regions->is_loop;
    refuse(n, "%s %zu is %s, and %s; both must have one dtype, shape and device",
           is_loop ? "the carried value" : "result", i,
           (describe(a) + (is_loop ? "" : " in the first branch")).c_str(),
           (describe(b) + (is_loop ? " behind the body" : " in the second")).c_str());
  }

  // Gives a value memory of its own, in C order.
  void new_result(int32_t value, const TensorType &type) {
    Value &v = p_.values_[size_t(value)];
    v.type = type;
    make_dense_in_order(&v.type);
    int64_t below = 0, above = 0;
    extent(v.type, &below, &above);
    p_.memories_.push_back({Where::block, -1, type.device, std::max<uint64_t>(uint64_t(above), 1)});
    place(value, int32_t(p_.memories_.size()) - 1);
  }

  // A node that copies a value, behind all others.
  int32_t add_copy(int32_t source) {
    const auto copy = int32_t(p_.values_.size());
    p_.values_.emplace_back();
    metas_.emplace_back();
    p_.nodes_.emplace_back();
    Node &n = p_.nodes_.back();
    n.op = runtime->op("clone");
    n.form = PLAIT_FUNCTION;
    n.in.resize(n.op->n_args, none());
    n.in[0].tag = PLAIT_TENSOR;
    n.slots.push_back({&n.in[0].u.t, source});
    n.in[1] = value("preserve_format");
    n.out.resize(n.op->n_results);
    n.results = {{copy}};
    n.is_list = {false};
    infer_node(int32_t(p_.nodes_.size()) - 1);
    return copy;
  }

  // False if the shapes of the results depend on values.
  bool call_on_meta(Node &n, std::vector<plait_value> &in) {
    out_.assign(n.out.begin(), n.out.end());
    plait_call c{};
    c.size = sizeof c;
    c.n_in = n.op->n_args;
    c.n_out = n.op->n_results;
    c.op = n.op;
    c.in = in.data();
    c.out = out_.data();
    c.thread = thread_;
    c.form = n.form;
    if (n.form == PLAIT_FUNCTION) std::fill(out_.begin(), out_.end(), none());
    const DLDevice before = std::exchange(thread_->device, DLDevice{PLAIT_META, 0});
    const plait_status s = runtime->call(&c);
    thread_->device = before;
    if (s >= 0) return true;
    if (s != PLAIT_NOT_IMPLEMENTED) throw Error(s);
    runtime->clear(thread_);
    return false;
  }

  void take_results(Node *n, DLDevice device) {
    if (n->form != PLAIT_FUNCTION) return;
    bool any_new = false, any_old = false, is_whole = true;
    for (size_t i = 0; i < n->results.size(); i++) {
      plait_value &v = out_[i];
      const std::vector<int32_t> &values = n->results[i];
      const uint32_t count = v.tag == PLAIT_TENSORS ? v.n : 1;
      if (values.size() != count || n->is_list[i] != (v.tag == PLAIT_TENSORS)) {
        for (plait_value &each : out_) runtime->release_value(&each);
        check(runtime->raise(thread_, PLAIT_VALUE_ERROR, n->op->name,
                             "result %zu has %u tensors; the graph has %zu names for it", i, count,
                             values.size()));
      }
      for (uint32_t k = 0; k < count; k++) {
        plait_tensor *t = v.tag == PLAIT_TENSOR    ? v.u.t
                          : v.tag == PLAIT_TENSORS ? v.u.ts[k]
                                                   : nullptr;
        is_whole &= v.tag == PLAIT_TENSOR && values[k] != -1;
        if (t && values[k] >= 0)
          (take_result(t, values[k], device) ? any_new : any_old) = true;
        else if (values[k] < -1)
          any_old = true;
        else if (values[k] >= 0)
          is_whole = false, any_new = true;
      }
    }
    for (plait_value &each : out_) runtime->release_value(&each);
    bool writes = false;
    for (uint16_t i = 0; i < n->op->n_args; i++)
      writes |= bool(plait_arg_at(n->op, i)->flags & PLAIT_ARG_WRITES);
    n->runs = writes || any_new || n->results.empty();
    // a call with targets gives each result where it is to lie; without them there is a new tensor
    n->allocates = n->runs && !n->results.empty() && (!is_whole || any_old);
    if (n->allocates)
      for (const auto &values : n->results)
        for (const int32_t v : values)
          if (v >= 0) p_.values_[size_t(v)].memory = -1, metas_[size_t(v)] = Tensor();
  }

  void check_bounds(const Value &v, const Memory &m) {
    int64_t below = 0, above = 0;
    if (extent(v.type, &below, &above) && v.offset + below >= m.begin &&
        v.offset + above <= m.begin + int64_t(m.nbytes))
      return;
    check(runtime->raise(thread_, PLAIT_SHAPE_ERROR, "graph",
                         "the view %s reaches outside of its memory", v.name.c_str()));
  }

  // Whether the result lies in new memory.
  bool take_result(plait_tensor *t, int32_t value, DLDevice device) {
    Value &v = p_.values_[size_t(value)];
    const auto known = memory_by_storage_.find(t->storage);
    if (known != memory_by_storage_.end()) {
      v.memory = known->second.first;
      const Memory &m = p_.memories_[size_t(v.memory)];
      v.type = type_of(t, m.device);
      v.offset = int64_t(reinterpret_cast<uint64_t>(t->dl.data) - known->second.second);
      check_bounds(v, m);
      metas_[size_t(value)] = Tensor::share(t);
      return false;
    }
    v.type = type_of(t, device);
    make_dense(&v.type);
    int64_t below = 0, above = 0;
    if (!extent(v.type, &below, &above))
      check(runtime->raise(thread_, PLAIT_SHAPE_ERROR, "graph",
                           "the value %s has more than 2^61 bytes", v.name.c_str()));
    p_.memories_.push_back({Where::block, -1, device, std::max<uint64_t>(uint64_t(above), 1)});
    place(value, int32_t(p_.memories_.size()) - 1);
    return true;
  }

  Program &p_;
  plait_thread *thread_;
  CallLimit &limit_;
  std::vector<Tensor> metas_;
  std::vector<plait_value> out_;
  // by the storage of the meta tensors: the memory and the number that is its address
  std::unordered_map<plait_storage *, std::pair<int32_t, uint64_t>> memory_by_storage_;
  uint64_t next_address_ = alignment;
};

uint64_t Program::most_calls() const {
  uint64_t most = most_calls_of_a_node * nodes_.size() + 4 * values_.size();
  for (const Node &n : nodes_)
    if (n.regions) most += n.regions->first->most_calls() + n.regions->second->most_calls();
  return most;
}

void Program::plan(plait_thread *thread) {
  const NoLayers none(thread);
  CallLimit limit(thread, most_calls_of_a_graph + most_calls());
  plan_region(thread, &limit);
}

void Program::plan_region(plait_thread *thread, CallLimit *limit) {
  Planner planner(this, thread, limit);
  planner.infer();
  planner.finish(n_inputs());
}

void Program::plan_round(plait_thread *thread, CallLimit *limit, size_t n_carried, bool is_body) {
  Planner planner(this, thread, limit);
  planner.infer();
  if (is_body) planner.separate_outputs(n_carried);
  is_round_ = true;
  planner.finish(n_carried);
}

uint64_t Program::planned_bytes() const {
  uint64_t total = constant_bytes();
  for (const Block &b : blocks_) total += b.nbytes;
  uint64_t most = 0;  // of one thread
  for (const Group &g : groups_) most = std::max(most, g.scratch_bytes());
  if (most) {
    const plait_executor *executor = role<plait_executor>(runtime);
    total += most * executor->width(executor->ctx);
  }
  return total;
}

uint64_t Program::tensor_bytes(bool all) const {
  uint64_t total = planned_bytes();
  for (const Memory &m : memories_)
    if (m.where == Where::output || (all && (m.where == Where::input || m.where == Where::weight)))
      total += m.nbytes;
  return total;
}

uint64_t Program::constant_bytes() const {
  uint64_t total = 0;
  for (const Memory &m : memories_)
    if (m.where == Where::constant) total += m.nbytes;
  for (const Node &n : nodes_)
    if (n.regions)
      total += n.regions->first->constant_bytes() + n.regions->second->constant_bytes();
  return total;
}

}  // namespace plait::graph
