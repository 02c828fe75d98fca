#include "recording/recorder.hpp"

#include <dlfcn.h>
#include <algorithm>

#include <plait/layer.hpp>

#include "text.hpp"

namespace plait::graph {
namespace {

constexpr uint32_t position = 6;  // below "autograd", "forward" and "batching", above "python"
// Values that nobody holds are looked for each time when so many bytes are new.
constexpr uint64_t most_new_bytes = 1 << 20;
uint64_t layer_bit;                // 0: there is no layer yet
thread_local Recorder *current;

// Tensors of one storage with the same key have the same elements in the same memory.
std::string key(const plait_tensor *t) {
  std::string result;
  const auto add = [&](const void *p, size_t n) { result.append(static_cast<const char *>(p), n); };
  const DLTensor &dl = t->dl;
  add(&dl.data, sizeof dl.data);
  add(&dl.dtype, sizeof dl.dtype);
  add(dl.shape, size_t(dl.ndim) * sizeof *dl.shape);
  const bool empty = numel(t) == 0;
  for (int i = 0; i < dl.ndim; i++) {
    const int64_t stride = empty || dl.shape[i] == 1 ? 0 : dl.strides[i];
    add(&stride, sizeof stride);
  }
  return result;
}

// The generator from which a call on the device draws, or NULL.
plait_generator *generator_of(DLDevice device) {
  const auto *rng = role<plait_rng>(runtime);
  if (!rng) return nullptr;
  if (PLAIT_HAS(plait_rng, rng, device_generator)) return rng->device_generator(rng->ctx, device);
  return rng->default_generator(rng->ctx);
}

uint64_t offset_of(const plait_generator *g) {
  return __atomic_load_n(&g->offset, __ATOMIC_ACQUIRE);
}

// Whether the call is a view that vmap makes of a tensor for each sample, beside one of the memory
// of all samples. Calls on these tell of the latter.
bool is_batched(const plait_call *c) {
  const plait_tensor *t = c->n_in && c->in[0].tag == PLAIT_TENSOR ? c->in[0].u.t : nullptr;
  return (c->op->flags & PLAIT_OP_VIEW) && t && (t->layers & layers_of_bytes) && !t->slot[3];
}

plait_status layer(plait_call *c) {
  if (!current || is_batched(c)) return runtime->call_below(c);
  return border(c->thread, c->op->name, [&] { return current->record(c); });
}

}  // namespace

Recorder::Recorder(bool is_region) : is_region_(is_region) {
  if (const plait_generator *g = generator_of({kDLCPU, 0})) drawn_from(g);
}

Recorder::Drawn &Recorder::drawn_from(const plait_generator *g) {
  for (Drawn &each : drawn_)
    if (each.generator == g) return each;
  drawn_.push_back({g, g->seed, offset_of(g)});
  return drawn_.back();
}

void Recorder::refuse(const plait_call *c, const std::string &why) {
  if (problem_.empty()) problem_ = std::string(c->op->name) + ": " + why;
}

std::string Recorder::add_value(plait_tensor *t) {
  const std::string name = std::to_string(n_values_++);
  names_[t->storage].emplace(key(t), name);
  values_ += (values_.empty() ? "" : ",\n") + value_text(name, t);
  return name;
}

void Recorder::add_node(const std::string &text) {
  nodes_ += (nodes_.empty() ? "" : ",\n") + text;
  n_nodes_++;
}

// A view that no recorded call made, of memory that one did.
std::string Recorder::as_strided(plait_tensor *t, const Memory &memory) {
  const auto offset = static_cast<char *>(t->dl.data) - static_cast<char *>(t->storage->data);
  const std::string name = add_value(t);
  add_node("{\"op\": \"as_strided\", \"in\": [\"%" + memory.first + "\", " +
           ints_text(t->dl.shape, t->dl.ndim) + ", " + ints_text(t->dl.strides, t->dl.ndim) + ", " +
           std::to_string(offset / itemsize(t->dl.dtype)) + "], \"out\": [\"%" + name + "\"]}");
  return name;
}

std::string Recorder::find(const plait_tensor *t) const {
  const auto names = names_.find(t->storage);
  if (names == names_.end()) return std::string();
  const auto known = names->second.find(key(t));
  return known == names->second.end() ? std::string() : known->second;
}

void Recorder::forget_dead() {
  new_bytes_ = 0;
  for (auto it = memories_.begin(); it != memories_.end();) {
    const Memory &memory = it->second;
    if (memory.is_outside || __atomic_load_n(&memory.storage->o.refs, __ATOMIC_ACQUIRE) > 1) {
      ++it;
      continue;
    }
    names_.erase(it->first);
    it = memories_.erase(it);
  }
}

std::string Recorder::name_of(plait_tensor *t) {
  if (t->slot[3] && problem_.empty()) problem_ = "a tensor is sparse; a graph has dense ones";
  if (std::string known = find(t); !known.empty()) return known;
  const auto memory = memories_.find(t->storage);
  const bool is_known =
      memory != memories_.end() && (!memory->second.is_outside || memory->second.is_argument);
  if (is_known && !memory->second.first.empty() && same(memory->second.first_dtype, t->dl.dtype)) {
    reads_offsets_ |= memory->second.is_argument;
    return as_strided(t, memory->second);
  }
  if (memory != memories_.end() && !memory->second.is_outside) {
    if (problem_.empty()) problem_ = "a view was made that no operator made, of another dtype";
  }
  if (inner_.count(t->storage) && problem_.empty())
    problem_ =
        "a tensor that a function of cond or while_loop computed is used outside of it; "
        "return it from there";
  if (memory != memories_.end() && memory->second.is_argument && problem_.empty())
    problem_ = "a view of an argument was made that no operator made, as by x.view(dtype)";
  const std::string name = "w" + std::to_string(outside_.size());
  outside_.push_back({name, Tensor::share(t), value_text(name, t)});
  names_[t->storage].emplace(key(t), name);
  if (memory == memories_.end()) {
    const bool at_start = t->dl.data == t->storage->data;
    memories_.emplace(t->storage, Memory{Ref<plait_storage>::share(t->storage), true, false,
                                         at_start ? name : std::string(), t->dl.dtype});
  }
  return name;
}

void Recorder::end_arguments() {
  for (auto &[storage, memory] : memories_) memory.is_argument = true;
}

// New memory that C++ code made for the call, without an operator, and that the call fills.
void Recorder::make_target(plait_tensor *t) {
  if (!find(t).empty() || memories_.count(t->storage) || t->slot[1] ||
      t->dl.data != t->storage->data)
    return;
  const std::string name = add_value(t);
  memories_.emplace(t->storage,
                    Memory{Ref<plait_storage>::share(t->storage), false, false, name, t->dl.dtype});
  add_node("{\"op\": \"empty_strided\", \"in\": [" + ints_text(t->dl.shape, t->dl.ndim) + ", " +
           ints_text(t->dl.strides, t->dl.ndim) + ", {\"dtype\": \"" + plait::name(t->dl.dtype) +
           "\"}, {\"device\": \"" + device_text(runtime, t->dl.device) + "\"}], \"out\": [\"%" +
           name + "\"]}");
}

std::string Recorder::argument(const plait_call *c, uint16_t i) {
  const plait_value &v = c->in[i];
  switch (v.tag) {
    case PLAIT_TENSOR: return "\"%" + name_of(v.u.t) + "\"";
    case PLAIT_TENSORS: {
      std::string text = "[";
      for (uint32_t k = 0; k < v.n; k++)
        text += (k ? ", " : "") + (v.u.ts[k] ? "\"%" + name_of(v.u.ts[k]) + "\"" : "null");
      return text + "]";
    }
    case PLAIT_OBJECT:
      refuse(c, std::string("`") + plait_arg_at(c->op, i)->name +
                    "` is a generator of its own, whose state is no part of a graph or its file; "
                    "draw from the default generator, or outside, and pass the numbers");
      return "null";
    default: return scalar_text(v);
  }
}

std::string Recorder::result(const plait_call *c, const plait_value &v, bool *is_new) {
  const auto one = [&](plait_tensor *t) -> std::string {
    if (!t) return "null";
    if (t->slot[3]) refuse(c, "a result is sparse; a graph has dense tensors");
    if (const std::string known = find(t); !known.empty()) return "\"%" + known + "\"";
    *is_new = true;
    const std::string name = add_value(t);
    if (!memories_.count(t->storage)) new_bytes_ += t->storage->nbytes;
    const bool at_start = t->dl.data == t->storage->data;
    memories_.emplace(t->storage, Memory{Ref<plait_storage>::share(t->storage), false, false,
                                         at_start ? name : std::string(), t->dl.dtype});
    return "\"%" + name + "\"";
  };
  if (v.tag == PLAIT_NONE) return "null";
  if (v.tag == PLAIT_TENSOR) return one(v.u.t);
  if (v.tag != PLAIT_TENSORS) return refuse(c, "a result is no tensor"), "null";
  std::string text = "[";
  for (uint32_t k = 0; k < v.n; k++) text += (k ? ", " : "") + one(v.u.ts[k]);
  return text + "]";
}

const plait_tensor *Recorder::written_outside(const plait_call *c) const {
  const auto is_outside = [&](const plait_tensor *t) {
    const auto memory = memories_.find(t->storage);
    return memory != memories_.end() && memory->second.is_outside && !memory->second.is_argument;
  };
  if (c->form != PLAIT_FUNCTION) {
    for (uint16_t i = 0; i < c->n_out; i++)
      if (is_outside(c->out[i].u.t)) return c->out[i].u.t;
    return nullptr;
  }
  for (uint16_t i = 0; i < c->n_in; i++)  // running statistics are written in training alone
    if (std::strcmp(plait_arg_at(c->op, i)->name, "training") == 0 && c->in[i].tag == PLAIT_BOOL &&
        !c->in[i].u.i)
      return nullptr;
  for (uint16_t i = 0; i < c->n_in; i++) {
    const plait_value &v = c->in[i];
    if (!(plait_arg_at(c->op, i)->flags & PLAIT_ARG_WRITES)) continue;
    if (v.tag == PLAIT_TENSOR && is_outside(v.u.t)) return v.u.t;
    for (uint32_t k = 0; v.tag == PLAIT_TENSORS && k < v.n; k++)
      if (v.u.ts[k] && is_outside(v.u.ts[k])) return v.u.ts[k];
  }
  return nullptr;
}

void Recorder::note_inner(const plait_tensor *t) {
  inner_.emplace(t->storage, Ref<plait_storage>::share(t->storage));
}

void Recorder::note_region(const Recorder &region, const std::vector<Tensor> &results) {
  inner_.insert(region.inner_.begin(), region.inner_.end());
  for (const auto &[storage, memory] : region.memories_) {
    bool is_inner = !memory.is_outside && __atomic_load_n(&storage->o.refs, __ATOMIC_ACQUIRE) > 1;
    for (const Tensor &t : results) is_inner &= t.get()->storage != storage;
    if (is_inner) inner_.emplace(storage, Ref<plait_storage>::share(storage));
  }
}

void Recorder::add_regions(const std::string &begin, const std::string &regions,
                           const std::vector<Tensor> &results) {
  std::string out;
  for (const Tensor &t : results) {
    const std::string name = add_value(t.get());
    memories_.emplace(t.get()->storage, Memory{Ref<plait_storage>::share(t.get()->storage), false,
                                               false, name, t.dtype()});
    out += (out.empty() ? "\"%" : ", \"%") + name + "\"";
  }
  add_node(begin + ", \"out\": [[" + out + "]], \"regions\": " + regions + "}");
  if (!keeps_copies_) return;
  static const Operator clone(runtime, "clone");
  plait_thread *thread = runtime->thread();
  const NoLayers none(thread);
  for (const Tensor &t : results)
    copies_.push_back({n_nodes_ - 1, find(t.get()), clone(thread, t)});
}

plait_status Recorder::record(plait_call *c) {
  if (apart_.count(c->op->name)) return runtime->decompose(c);
  if (refused_.count(c->op->name))
    return runtime->raise(c->thread, PLAIT_NOT_IMPLEMENTED, c->op->name, "it is called here");
  // the call may change the shape of an argument, so names are looked up before it
  std::string in, out;
  if (new_bytes_ > most_new_bytes) forget_dead();
  if (std::strcmp(c->op->name, "copy_") == 0) make_target(c->in[0].u.t);
  reads_offsets_ |= std::strncmp(c->op->name, "as_strided", 10) == 0;
  for (uint16_t i = 0; i < c->n_in; i++) in += (i ? ", " : "") + argument(c, i);
  for (uint16_t i = 0; c->form != PLAIT_FUNCTION && i < c->n_out; i++)
    out += (i ? ", \"%" : "\"%") + name_of(c->out[i].u.t) + "\"";
  if (const plait_tensor *t = is_region_ ? written_outside(c) : nullptr)
    return runtime->raise(c->thread, PLAIT_NOT_IMPLEMENTED, c->op->name,
                          "a function of cond or while_loop writes to a tensor %s%s from outside "
                          "of it; return the new value instead",
                          plait::name(t->dl.dtype), shape_text(t).c_str());
  uint64_t written = c->form != PLAIT_FUNCTION;
  for (uint16_t i = 0; i < c->n_in; i++)
    written |= plait_arg_at(c->op, i)->flags & PLAIT_ARG_WRITES;
  const plait_generator *g = generator_of(c->device);
  if (g) drawn_from(g);  // known from the first call on its device on, before that call draws
  const Drawn before = g ? Drawn{g, g->seed, offset_of(g)} : Drawn{};
  const uint64_t excluded = c->thread->excluded;
  c->thread->excluded |= layer_bit;  // what a kernel calls is a part of this call
  is_within_call_ = true;
  const plait_status s = runtime->call_below(c);
  is_within_call_ = false;
  c->thread->excluded = excluded;
  if (s != PLAIT_OK) return s;
  if (g && ((c->op->flags & PLAIT_OP_RANDOM) || offset_of(g) != before.offset)) {
    Drawn &last = drawn_from(g);
    if (before.seed != last.seed || before.offset < last.offset)
      refuse(c,
             "the function has set the random generator, as by manual_seed(), set_rng_state(), "
             "or a checkpoint of layers that draw; a graph goes on from where the generator is");
    last = {g, g->seed, offset_of(g)};
  }
  bool is_new = false;
  for (uint16_t i = 0; c->form == PLAIT_FUNCTION && i < c->n_out; i++)
    out += (i ? ", " : "") + result(c, c->out[i], &is_new);
  if (!is_new && !written && c->n_out) return s;  // its results are known tensors
  const char *form = c->form == PLAIT_INPLACE ? ", \"form\": \"inplace\""
                     : c->form == PLAIT_OUT   ? ", \"form\": \"out\""
                                              : "";
  add_node("{\"op\": " + string_text(c->op->name) + form + ", \"in\": [" + in + "], \"out\": [" +
           out + "]}");
  if (keeps_copies_) copy_results(c);
  return s;
}

void Recorder::copy_results(const plait_call *c) {
  static const Operator clone(runtime, "clone");
  const NoLayers none(c->thread);
  std::vector<std::string> names;  // of this node
  const auto one = [&](plait_tensor *t) {
    std::string name = t ? find(t) : std::string();
    if (name.empty() || std::find(names.begin(), names.end(), name) != names.end()) return;
    copies_.push_back({n_nodes_ - 1, name, clone(c->thread, t)});
    names.push_back(std::move(name));
  };
  const auto see = [&](const plait_value &v) {
    if (v.tag == PLAIT_TENSOR) one(v.u.t);
    for (uint32_t k = 0; v.tag == PLAIT_TENSORS && k < v.n; k++) one(v.u.ts[k]);
  };
  for (uint16_t i = 0; i < c->n_out; i++) see(c->out[i]);
  for (uint16_t i = 0; i < c->n_in; i++)
    if (plait_arg_at(c->op, i)->flags & PLAIT_ARG_WRITES) see(c->in[i]);
}

void Recorder::note_read(const plait_tensor *t) {
  if (problem_.empty() && !is_within_call_)
    problem_ = std::string("the function reads the elements of a tensor (") +
               plait::name(t->dl.dtype) + shape_text(t) +
               ") in Python, as by item(), float(), bool(), tolist(), numpy() or print(); a graph "
               "would have what they were in the first calls; cond and while_loop of "
               "plait_graph keep a branch or a loop on values";
}

void note_read(const plait_tensor *t) {
  if (current) current->note_read(t);
}

void Recorder::note_comparison(const Comparison &comparison) {
  if (follows_sizes_ && !is_within_call_) comparisons_.push_back(comparison);
}

bool observe_comparisons(const char *library) {
  using Observer = void (*)(int32_t, int64_t, int64_t);
  void *const handle = dlopen(library, RTLD_NOW | RTLD_NOLOAD);
  if (!handle) return false;
  void *const symbol = dlsym(handle, "plait_ops_observe_comparisons");
  const auto observe = reinterpret_cast<void (*)(Observer)>(symbol);
  if (observe)
    observe([](int32_t relation, int64_t a, int64_t b) {
      if (current) current->note_comparison({relation, a, b});
    });
  return observe != nullptr;  // the library stays: the handle is not closed
}

plait_status start_recording(plait_thread *thread, Recorder *recorder, Recorder **before) {
  if (!layer_bit) {
    uint32_t bit = 0;
    plait_status s = runtime->layer(thread, "recorder", position | PLAIT_LAYER_PASSIVE, &bit);
    if (s >= 0)
      s = runtime->implement(thread, nullptr, PLAIT_SLOT_LAYER + bit, layer, nullptr, plugin,
                             nullptr);
    if (s < 0) return s;
    layer_bit = uint64_t(1) << bit;
  }
  *before = std::exchange(current, recorder);
  thread->included |= layer_bit;
  return PLAIT_OK;
}

void stop_recording(plait_thread *thread, Recorder *before) {
  if (!before) thread->included &= ~layer_bit;
  current = before;
}

}  // namespace plait::graph
