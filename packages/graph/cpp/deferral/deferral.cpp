#include "deferral/deferral.hpp"

#include <algorithm>
#include <atomic>
#include <plait/layer.hpp>

namespace plait::graph {
namespace {

constexpr uint32_t position = 18;  // below the layers that take calls apart
uint64_t layer_bit;                // 0: there is no layer yet
thread_local std::shared_ptr<Deferral> current;

// Whether a thread defers calls: one does at a time, as another could read what waits in it.
std::atomic<bool> is_taken{false};

// What threads defer at this moment.
auto &all_mutex = *new std::mutex;
auto &all = *new std::vector<std::shared_ptr<Deferral>>;

// Results that nobody holds are given back each time when so many bytes are new.
constexpr uint64_t most_new_bytes = uint64_t(64) << 20;
constexpr size_t most_calls = 8192, most_segments = 8;

// Of plait_storage::flags: it has a number in a path. Another storage at the address of one that is
// gone has not.
constexpr uint64_t storage_is_numbered = uint64_t(1) << 30;
bool is_numbered(const plait_storage *s) {
  return __atomic_load_n(&s->flags, __ATOMIC_RELAXED) & storage_is_numbered;
}

// Writes by others to such memory are not seen.
bool is_foreign(const plait_storage *s) {
  constexpr uint64_t external = PLAIT_STORAGE_EXTERNAL | PLAIT_STORAGE_MAPPED;
  const uint64_t flags = __atomic_load_n(&s->flags, __ATOMIC_RELAXED);
  return flags & (PLAIT_STORAGE_SHARED | PLAIT_STORAGE_EXPORTED | PLAIT_STORAGE_PINNED) ||
         (flags & external) == PLAIT_STORAGE_EXTERNAL;
}

// Kernels that Python registers may do anything.
bool has_python_kernel(const plait_op *op) {
  if (op->n_backend <= uint64_t(kDLCPU)) return false;
  for (const plait_entry *e = op->backend[kDLCPU]; e; e = e->prev)
    if (!e->who || !e->who->init) return true;
  return false;
}

template <class F>
void each_tensor(const plait_value *values, uint16_t n, F &&f) {
  for (uint16_t i = 0; i < n; i++) {
    if (values[i].tag == PLAIT_TENSOR) f(values[i].u.t);
    if (values[i].tag != PLAIT_TENSORS) continue;
    for (uint32_t k = 0; k < values[i].n; k++)
      if (values[i].u.ts[k]) f(values[i].u.ts[k]);
  }
}

template <class F>
void each_tensor(const plait_call *c, F &&f) {
  each_tensor(c->in, c->n_in, f);
  if (c->form != PLAIT_FUNCTION) each_tensor(c->out, c->n_out, f);
}

// Whether elements of the arguments may be an error: indices out of range, matrices that are
// singular. The function must see it before it goes on, as gradients of such a call are nothing.
bool may_fail(const plait_call *c) {
  if (std::strncmp(c->op->name, "linalg_", 7) == 0 || std::strncmp(c->op->name, "cholesky", 8) == 0)
    return true;
  if (c->op->flags & PLAIT_OP_POINTWISE || std::strcmp(c->op->name, "copy_") == 0) return false;
  size_t n = 0;
  bool has_integers = false;
  each_tensor(c, [&](const plait_tensor *t) {
    n++;
    has_integers |= t->dl.dtype.code == kDLInt && t->dl.dtype.bits >= 32;
  });
  return has_integers && n > 1;
}

void mark(plait_tensor *t) { __atomic_fetch_or(&t->layers, layer_bit, __ATOMIC_RELAXED); }
void unmark(plait_tensor *t) {
  if (__atomic_load_n(&t->layers, __ATOMIC_RELAXED) & layer_bit)
    __atomic_fetch_and(&t->layers, ~layer_bit, __ATOMIC_RELAXED);
}

uint64_t version_of(const plait_storage *s) {
  return __atomic_load_n(&s->version, __ATOMIC_ACQUIRE);
}
void set_version(plait_storage *s, uint64_t version) {
  __atomic_store_n(&s->version, version, __ATOMIC_RELEASE);
}

plait_generator *default_generator() {
  const auto *rng = role<plait_rng>(runtime);
  return rng ? rng->default_generator(rng->ctx) : nullptr;
}
uint64_t offset_of(const plait_generator *g) {
  return g ? __atomic_load_n(&g->offset, __ATOMIC_ACQUIRE) : 0;
}
void set_offset(plait_generator *g, uint64_t offset) {
  __atomic_store_n(&g->offset, offset, __ATOMIC_RELEASE);
}
bool has_other_states() {
  const auto *rng = role<plait_rng>(runtime);
  return PLAIT_HAS(plait_rng, rng, state_size);
}

// The layer does not see what a call consists of.
class Below {
 public:
  explicit Below(plait_thread *t) : thread_(t), excluded_(t->excluded) { t->excluded |= layer_bit; }
  Below(const Below &) = delete;
  Below &operator=(const Below &) = delete;
  ~Below() { thread_->excluded = excluded_; }

 private:
  plait_thread *thread_;
  uint64_t excluded_;
};

// Calls f without the lock of the host language.
template <class F>
void without_host_lock(F &&f) {
  const auto *host = role<plait_host>(runtime);
  if (!host) return f();
  host->unlocked(
      host->ctx, [](void *arg) { (*static_cast<std::remove_reference_t<F> *>(arg))(); }, &f);
}

// Whether the shapes and dtypes of the results are known without the elements of the arguments.
bool has_known_types(const plait_call *c, const std::vector<const plait_tensor *> &results) {
  plait_thread *thread = c->thread;
  const NoLayers none(thread);
  std::vector<Tensor> metas;
  std::vector<plait_value> in(c->in, c->in + c->n_in), out(c->n_out, plait::none());
  std::vector<std::vector<plait_tensor *>> lists;
  bool is_known = true;
  const auto meta = [&](const plait_tensor *t) -> plait_tensor * {
    if (!t) return nullptr;
    Tensor m;
    const plait_status s = runtime->tensor_new(thread, t->dl.dtype, t->dl.ndim, t->dl.shape,
                                               t->dl.strides, {PLAIT_META, 0}, m.out());
    if (s < 0) is_known = false, runtime->clear(thread);
    if (m) m.get()->flags |= t->flags & PLAIT_TENSOR_WRAPPED_NUMBER;
    metas.push_back(m);
    return m.get();
  };
  lists.reserve(in.size());
  for (plait_value &v : in) {
    if (v.tag == PLAIT_TENSOR) v.u.t = meta(v.u.t);
    if (v.tag == PLAIT_DEVICE) v = value(DLDevice{PLAIT_META, 0});
    if (v.tag != PLAIT_TENSORS) continue;
    lists.emplace_back();
    for (uint32_t k = 0; k < v.n; k++) lists.back().push_back(meta(v.u.ts[k]));
    v.u.ts = lists.back().data();
  }
  if (!is_known) return false;
  plait_call m{};
  m.size = sizeof m;
  m.n_in = c->n_in;
  m.n_out = c->n_out;
  m.op = c->op;
  m.in = in.data();
  m.out = out.data();
  m.thread = thread;
  const DLDevice before = std::exchange(thread->device, DLDevice{PLAIT_META, 0});
  const plait_status s = runtime->call(&m);
  thread->device = before;
  if (s < 0) {
    runtime->clear(thread);
    return false;
  }
  size_t i = 0;
  each_tensor(out.data(), c->n_out, [&](const plait_tensor *t) {
    is_known &= i < results.size() && same(t->dl.dtype, results[i]->dl.dtype) &&
                t->dl.ndim == results[i]->dl.ndim &&
                std::equal(t->dl.shape, t->dl.shape + t->dl.ndim, results[i]->dl.shape);
    i++;
  });
  for (plait_value &v : out) runtime->release_value(&v);
  return is_known && i == results.size();
}

void add_numbers(const plait_value &v, std::vector<plait_value> *numbers) {
  if (v.tag != PLAIT_INTS) return numbers->push_back(v);
  for (uint32_t i = 0; i < v.n; i++) numbers->push_back(value(v.u.is[i]));
}

// A text that says that the call was deferred, around that of the error of the thread.
plait_status name_deferred(plait_thread *thread, plait_status s, const std::string &function) {
  if (!thread->error || thread->error->host) return s;
  const std::string text = thread->error->message ? thread->error->message : "";
  return runtime->raise(thread, s, nullptr,
                        "%s (a call that compile deferred; the function is `%s`)", text.c_str(),
                        function.c_str());
}

// Calls of threads that defer nothing, on tensors that wait for the calls of another one.
plait_status flush_others(plait_call *c) {
  std::vector<std::shared_ptr<Deferral>> others;
  {
    const std::lock_guard<std::mutex> lock(all_mutex);
    others = all;
  }
  for (const auto &each : others) {
    bool waits = false;
    plait::graph::each_tensor(
        c, [&](const plait_tensor *t) { waits = waits || each->is_pending(t->storage); });
    const plait_status s = waits ? each->flush(c->thread) : plait_status(PLAIT_OK);
    if (s < 0) return s;
  }
  return PLAIT_OK;
}

plait_status layer(plait_call *c) {
  if (current) {
    const std::shared_ptr<Deferral> &d = current;
    return border(c->thread, c->op->name, [&] { return d->call(c); });
  }
  const plait_status s = border(c->thread, c->op->name, [&] { return flush_others(c); });
  if (s < 0) return s;
  each_tensor(c, [](plait_tensor *t) {
    unmark(t);
    if (t->base) unmark(t->base);
  });
  return runtime->call_below(c);
}

}  // namespace

// Waits for another thread without the lock of the host language, which that may need.
class Deferral::Lock {
 public:
  explicit Lock(std::recursive_mutex *m) : mutex_(m) {
    if (!m->try_lock()) without_host_lock([m] { m->lock(); });
  }
  Lock(const Lock &) = delete;
  Lock &operator=(const Lock &) = delete;
  ~Lock() { mutex_->unlock(); }

 private:
  std::recursive_mutex *mutex_;
};

void StorageNumbers::set(const plait_storage *s, int64_t number) {
  Entry &e = entries_[slot(s)];
  n_ += e.generation != generation_;
  e = {s, number, generation_};
  if (n_ * 2 < entries_.size()) return;
  std::vector<Entry> before(entries_.size() * 2);
  before.swap(entries_);
  shift_--;
  for (const Entry &each : before)
    if (each.generation == generation_) entries_[slot(each.storage)] = each;
}

void StorageNumbers::clear() {
  generation_++;
  n_ = 0;
}

void Deferral::Storage::hold(plait_storage *s) {
  held = Ref<plait_storage>::share(s);
  if (!(__atomic_load_n(&s->flags, __ATOMIC_RELAXED) & storage_waits))
    __atomic_fetch_or(&s->flags, storage_waits, __ATOMIC_RELAXED);
}

void Deferral::Storage::let_go() {
  if (!held) return;
  __atomic_fetch_and(&held->flags, ~storage_waits, __ATOMIC_RELAXED);
  held = Ref<plait_storage>();
}

Deferral::Deferral(plait_thread *thread, Trie *trie) : thread_(thread), trie_(trie) { restart(); }

void Deferral::restart() {
  root_ = at_ = begin_ = trie_->root(thread_);
  truncate(0, 0);
}

void Deferral::truncate(size_t places, size_t storages) {
  places_.resize(places);
  if (storages == 0) numbers_of_storages_.clear();
  while (storages_.size() > storages) {
    storages_.back().let_go();
    const auto number = int64_t(storages_.size()) - 1;
    if (storages && numbers_of_storages_.find(storages_.back().address) == number)
      numbers_of_storages_.set(storages_.back().address, -1);
    storages_.pop_back();
  }
}

// The calls.

bool Deferral::is_deferrable(const plait_call *c) const {
  if (c->todo || c->device.device_type != kDLCPU || has_python_kernel(c->op)) return false;
  if (may_fail(c)) return false;
  if (__atomic_load_n(runtime->observed, __ATOMIC_RELAXED) & PLAIT_EVENT_OP) return false;
  bool is = true;
  each_tensor(c, [&](const plait_tensor *t) {
    is &= t->dl.device.device_type == kDLCPU && !(t->layers & layers_of_bytes) && !t->slot[3] &&
          !is_foreign(t->storage);
  });
  const auto is_readonly = [](const plait_tensor *t) {
    return (__atomic_load_n(&t->storage->flags, __ATOMIC_RELAXED) & PLAIT_STORAGE_READONLY) != 0;
  };
  bool writes = c->form != PLAIT_FUNCTION;
  for (uint16_t i = 0; i < c->n_in; i++) {
    if (c->in[i].tag == PLAIT_OBJECT) return false;
    if (!(plait_arg_at(c->op, i)->flags & PLAIT_ARG_WRITES)) continue;
    writes = true;
    each_tensor(c->in + i, 1, [&](const plait_tensor *t) { is &= !is_readonly(t); });
  }
  if (c->form != PLAIT_FUNCTION)
    each_tensor(c->out, c->n_out, [&](const plait_tensor *t) { is &= !is_readonly(t); });
  return is && (writes || c->n_out);
}

plait_status Deferral::call(plait_call *c) {
  if (c->op->flags & PLAIT_OP_VIEW) {  // it needs no elements
    bool is_marked = false;
    each_tensor(c, [&](const plait_tensor *t) { is_marked |= (t->layers & layer_bit) != 0; });
    const plait_status s = runtime->call_below(c);
    if (s == PLAIT_OK && is_marked) each_tensor(c->out, c->n_out, mark);
    return s;
  }
  CallNode *child = nullptr;
  const bool may_wait = is_deferrable(c);
  {
    const Lock lock(&mutex_);
    if (may_wait) {
      if (trie_->root(thread_) != root_) {  // another default dtype, for example
        if (const plait_status s = flush(thread_); s < 0) return s;
        restart();
      }
      child = at_ ? find_child(c) : nullptr;
      if (child && !child->is_eager) {
        try {
          defer(*child, c);
        } catch (...) {
          truncate(child->first_place, child->first_storage);
          throw;
        }
        at_ = child;
        if (new_bytes_ > most_new_bytes) give_back_dead();
        return pending_.size() >= most_calls ? flush(thread_) : PLAIT_OK;
      }
      if (child) truncate(child->first_place, child->first_storage);
    }
    if (const plait_status s = flush(thread_); s < 0) return s;
  }
  each_tensor(c, [](plait_tensor *t) {
    unmark(t);
    if (t->base) unmark(t->base);
  });
  if (at_ && !child && may_wait) return record(c);
  const plait_status s = call_now(c);
  restart();
  return s;
}

plait_status Deferral::call_now(plait_call *c) {
  const Below below(c->thread);
  return runtime->call_below(c);
}

// Matching.

bool Deferral::matches_place(const CallNode &node, int32_t p, plait_tensor *t) {
  const auto i = size_t(p);
  const bool is_new = i >= places_.size();
  const Place &place = is_new ? node.places[i - node.first_place] : *places_[i];
  if (!place.type.fits(t)) return false;
  const auto *data = static_cast<const char *>(t->dl.data);
  if (place.storage < storages_.size()) {
    Storage &s = storages_[place.storage];
    // an address of no elements says nothing
    if (s.address != t->storage || !is_numbered(t->storage)) return false;
    if (data != s.origin + place.offset) return false;
    if (!s.held) s.hold(t->storage);
  } else {
    if (number_of(t->storage) >= 0) return false;
    add_storage(t, false);
    storages_.back().hold(t->storage);
  }
  if (is_new) places_.push_back(&place);
  return true;
}

bool Deferral::matches(const CallNode &node, const plait_call *c) {
  if (node.op != c->op || node.form != c->form) return false;
  const auto fits = [&](const Argument &a, const plait_value &v) {
    if (!a.is_tensor()) return a.fits(v);
    if (a.value.tag != v.tag) return false;
    if (v.tag == PLAIT_TENSOR) return matches_place(node, a.places[0], v.u.t);
    bool all = a.places.size() == v.n;
    for (uint32_t k = 0; all && k < v.n; k++)
      all = (a.places[k] < 0) == !v.u.ts[k] &&
            (!v.u.ts[k] || matches_place(node, a.places[k], v.u.ts[k]));
    return all;
  };
  for (uint16_t i = 0; i < c->n_in; i++)
    if (!fits(node.in[i], c->in[i])) return false;
  for (size_t i = 0; i < node.targets.size(); i++)
    if (!matches_place(node, node.targets[i], c->out[i].u.t)) return false;
  return true;
}

CallNode *Deferral::find_child(const plait_call *c) {
  const size_t n_places = places_.size(), n_storages = storages_.size();
  for (const auto &child : at_->children) {
    if (matches(*child, c)) return child.get();
    truncate(n_places, n_storages);
  }
  // a call that differs in numbers alone, of which its results' types are independent
  for (const auto &child : at_->children) {
    if (child->op != c->op || child->form != c->form || child->is_eager) continue;
    std::vector<Argument *> others;
    for (uint16_t i = 0; i < c->n_in; i++) {
      Argument &a = child->in[i];
      if (a.may_vary && !a.varies && a.value.tag == c->in[i].tag && !a.fits(c->in[i]))
        others.push_back(&a);
    }
    for (Argument *a : others) a->varies = true;
    if (!others.empty() && matches(*child, c)) {
      trie_->count_change();
      // calls that wait already have the number that they were recorded with
      return child.get();
    }
    for (Argument *a : others) a->varies = false;
    truncate(n_places, n_storages);
  }
  return nullptr;
}

void Deferral::add_storage(plait_tensor *t, bool is_made) {
  plait_storage *storage = t->storage;
  const int64_t known = numbers_of_storages_.find(storage);
  if (known >= 0) storages_[size_t(known)].address = nullptr;  // its address is used again
  numbers_of_storages_.set(storage, int64_t(storages_.size()));
  storages_.emplace_back();
  Storage &s = storages_.back();
  s.address = storage;
  s.origin = static_cast<char *>(t->dl.data);
  s.is_made = is_made;
  if (!is_numbered(storage))
    __atomic_fetch_or(&storage->flags, storage_is_numbered, __ATOMIC_RELAXED);
}

int64_t Deferral::number_of(const plait_storage *s) const {
  return is_numbered(s) ? numbers_of_storages_.find(s) : -1;
}

// Deferring.

plait_tensor *Deferral::make_place(const CallNode &node, int32_t p, plait_thread *thread) {
  const Place &place = node.places[size_t(p) - node.first_place];
  const NewStorage &made = node.storages[place.storage - node.first_new_storage];
  Ref<plait_storage> storage;
  check(runtime->storage_new(thread, {kDLCPU, 0}, made.nbytes, storage.out()));
  Tensor result;
  const int64_t *sizes = place.type.sizes.data();
  check(runtime->tensor_on(thread, storage.get(), storage->data, place.type.dtype, place.type.ndim,
                           sizes, sizes + place.type.ndim, result.out()));
  storage->version = made.version;
  storage->flags |= storage_is_numbered | storage_waits;
  result.get()->layers |= layer_bit;
  add_storage(result.get(), true);
  storages_.back().held = std::move(storage);
  places_.push_back(&place);
  storages_.back().nbytes = made.nbytes;
  new_bytes_ += made.nbytes;
  return result.release();
}

// The value, whose list the caller does not keep.
plait_value Deferral::keep_number(plait_value v) {
  if (v.tag != PLAIT_INTS) return v;
  lists_.emplace_back(v.u.is, v.u.is + v.n);
  v.u.is = lists_.back().data();
  return v;
}

void Deferral::make_results(const CallNode &node, plait_call *c) {
  std::vector<Tensor> held;  // until all are there
  for (size_t i = 0; i < node.results.size(); i++) {
    std::vector<plait_tensor *> list;
    for (const Result &r : node.results[i]) {
      plait_tensor *t = nullptr;
      if (r.is_new) {
        t = make_place(node, r.place, c->thread);
        held.push_back(Tensor::steal(t));
      } else if (r.is_argument) {
        const plait_value &v = c->in[r.argument];
        t = r.item < 0 ? v.u.t : v.u.ts[r.item];
      }
      list.push_back(t);
    }
    if (node.is_list[i])
      check(runtime->tensors(c->thread, list.data(), uint32_t(list.size()), &c->out[i]));
    else
      c->out[i] = value(Tensor::share(list[0]).release());
  }
}

void Deferral::defer(const CallNode &node, plait_call *c) {
  PendingCall pending{const_cast<CallNode *>(&node), 0, 0};
  if (node.form == PLAIT_FUNCTION) {
    if (node.results.size() == 1 && !node.is_list[0] && node.results[0][0].is_new)
      c->out[0] = value(make_place(node, node.results[0][0].place, c->thread));
    else
      make_results(node, c);
  }
  for (const Write &each : node.writes) {
    Storage &s = storages_[place(each.place).storage];
    s.is_written = true;
    __atomic_fetch_add(&s.held->version, each.versions, __ATOMIC_ACQ_REL);
  }
  if (!node.writes.empty()) {
    const auto note = [](plait_tensor *t) {
      mark(t);
      if (t->base) mark(t->base);
    };
    for (uint16_t i = 0; i < c->n_in; i++)
      if (plait_arg_at(c->op, i)->flags & PLAIT_ARG_WRITES) each_tensor(c->in + i, 1, note);
    if (c->form != PLAIT_FUNCTION) each_tensor(c->out, c->n_out, note);
  }
  if (node.draws) {
    plait_generator *g = default_generator();
    pending.seed = g->seed;
    pending.offset = __atomic_fetch_add(&g->offset, node.draws, __ATOMIC_ACQ_REL);
  }
  for (uint16_t i = 0; i < c->n_in; i++)
    if (node.in[i].may_vary) varying_.push_back(keep_number(c->in[i]));
  pending_.push_back(pending);
}

// Recording.

int32_t Deferral::place_of(plait_tensor *t, CallNode *node) {
  const PlaceType type(t);
  auto *data = static_cast<char *>(t->dl.data);
  const int64_t known = number_of(t->storage);
  const auto end = int32_t(places_.size() + node->places.size());
  const auto get = [&](int32_t i) -> const Place & {
    return size_t(i) < places_.size() ? *places_[size_t(i)]
                                      : node->places[size_t(i) - places_.size()];
  };
  if (known >= 0) {
    const int64_t offset = data - storages_[size_t(known)].origin;
    for (int32_t i = end; i-- > 0;)
      if (get(i).storage == known && get(i).offset == offset && get(i).type.fits(t)) return i;
    node->places.push_back({uint32_t(known), offset, type});
    return end;
  }
  add_storage(t, false);
  node->places.push_back({uint32_t(storages_.size()) - 1, 0, type});
  return end;
}

void Deferral::describe(plait_call *c, CallNode *node) {
  node->op = c->op;
  node->form = c->form;
  node->first_place = uint32_t(places_.size());
  node->first_storage = uint32_t(storages_.size());
  bool writes = c->form != PLAIT_FUNCTION;
  for (uint16_t i = 0; i < c->n_in; i++)
    writes |= (plait_arg_at(c->op, i)->flags & PLAIT_ARG_WRITES) != 0;
  const bool may_vary =
      (writes || c->op->flags & PLAIT_OP_POINTWISE) && !(c->op->flags & PLAIT_OP_RANDOM);
  bool makes_nothing = c->form == PLAIT_FUNCTION && writes;
  for (uint16_t i = 0; i < c->n_out; i++)
    makes_nothing &= (plait_result_at(c->op, i)->flags & PLAIT_ARG_WRITES) != 0;
  node->in.resize(c->n_in);
  for (uint16_t i = 0; i < c->n_in; i++) {
    const plait_value &v = c->in[i];
    Argument &a = node->in[i];
    a.value.tag = v.tag;
    if (v.tag == PLAIT_TENSOR) {
      a.places.push_back(place_of(v.u.t, node));
    } else if (v.tag == PLAIT_TENSORS) {
      for (uint32_t k = 0; k < v.n; k++)
        a.places.push_back(v.u.ts[k] ? place_of(v.u.ts[k], node) : -1);
    } else {
      a.value = copy_scalar(v, &a.words);
      a.may_vary = may_vary && (v.tag == PLAIT_INT || v.tag == PLAIT_FLOAT);
      a.may_vary |= makes_nothing && v.tag == PLAIT_INTS;  // such as the numbers of steps
    }
  }
  if (c->form == PLAIT_FUNCTION) return;
  for (uint16_t i = 0; i < c->n_out; i++) node->targets.push_back(place_of(c->out[i].u.t, node));
}

// False for a result that is no tensor of its own memory, nor an argument.
bool Deferral::take_result(const plait_call *c, plait_tensor *t, CallNode *node, Result *r) {
  const auto find = [&](plait_tensor *argument, uint16_t i, int32_t item, int32_t p) {
    if (argument != t || r->is_argument) return;
    r->is_argument = true;
    r->argument = i;
    r->item = item;
    r->place = p;
  };
  for (uint16_t i = 0; i < c->n_in; i++) {
    const plait_value &v = c->in[i];
    if (v.tag == PLAIT_TENSOR) find(v.u.t, i, -1, node->in[i].places[0]);
    for (uint32_t k = 0; v.tag == PLAIT_TENSORS && k < v.n; k++)
      find(v.u.ts[k], i, int32_t(k), node->in[i].places[k]);
  }
  if (r->is_argument) return true;
  const auto sole = [](const plait_object &o) {
    return __atomic_load_n(&o.refs, __ATOMIC_ACQUIRE) == 1;
  };
  const plait_storage *s = t->storage;
  if (!sole(t->o) || !sole(s->o) || t->base || t->flags || t->layers || s->flags ||
      t->dl.data != s->data || t->dl.device.device_type != kDLCPU ||
      std::any_of(t->slot, t->slot + 4, [](void *p) { return p != nullptr; }))
    return false;
  add_storage(t, true);
  r->is_new = true;
  r->place = int32_t(node->first_place + node->places.size());
  node->places.push_back({uint32_t(storages_.size()) - 1, 0, PlaceType(t)});
  node->storages.push_back({s->nbytes, version_of(s)});
  return true;
}

bool Deferral::take_results(const plait_call *c, CallNode *node) {
  bool any_new = false;
  std::vector<const plait_tensor *> tensors;
  for (uint16_t i = 0; i < c->n_out; i++) {
    const plait_value &v = c->out[i];
    node->results.emplace_back();
    node->is_list.push_back(v.tag == PLAIT_TENSORS);
    if (v.tag != PLAIT_TENSORS && v.tag != PLAIT_TENSOR && v.tag != PLAIT_NONE) return false;
    for (uint32_t k = 0; k < (v.tag == PLAIT_TENSORS ? v.n : 1); k++) {
      plait_tensor *t = v.tag == PLAIT_TENSOR    ? v.u.t
                        : v.tag == PLAIT_TENSORS ? v.u.ts[k]
                                                 : nullptr;
      Result r;
      if (t && !take_result(c, t, node, &r)) return false;
      if (t) tensors.push_back(t);
      any_new |= r.is_new;
      node->results.back().push_back(r);
    }
  }
  node->is_identity = !any_new && node->writes.empty() && c->n_out;
  return !any_new || has_known_types(c, tensors);
}

plait_status Deferral::record(plait_call *c) {
  const size_t n_places = places_.size(), n_storages = storages_.size();
  auto node = std::make_unique<CallNode>();
  describe(c, node.get());
  node->first_result = uint32_t(node->first_place + node->places.size());
  node->first_new_storage = uint32_t(storages_.size());
  std::vector<std::pair<int32_t, plait_storage *>> written;
  std::vector<uint64_t> before;
  const auto note = [&](int32_t p, const plait_tensor *t) {
    for (const auto &each : written)
      if (each.second == t->storage) return;
    written.emplace_back(p, t->storage);
    before.push_back(version_of(t->storage));
  };
  for (uint16_t i = 0; i < c->n_in; i++) {
    const plait_value &v = c->in[i];
    if (!(plait_arg_at(c->op, i)->flags & PLAIT_ARG_WRITES)) continue;
    if (v.tag == PLAIT_TENSOR) note(node->in[i].places[0], v.u.t);
    for (uint32_t k = 0; v.tag == PLAIT_TENSORS && k < v.n; k++)
      if (v.u.ts[k]) note(node->in[i].places[k], v.u.ts[k]);
  }
  for (size_t i = 0; i < node->targets.size(); i++) note(node->targets[i], c->out[i].u.t);
  const plait_generator *g = default_generator();
  const uint64_t offset = offset_of(g), seed = g ? g->seed : 0;
  const plait_status s = call_now(c);
  if (s != PLAIT_OK) {
    truncate(n_places, n_storages);
    return s;
  }
  node->draws = offset_of(g) - offset;
  for (size_t i = 0; i < written.size(); i++)
    node->writes.push_back({written[i].first, version_of(written[i].second) - before[i]});
  bool fits = !(g && g->seed != seed) &&
              !((c->op->flags & PLAIT_OP_RANDOM || node->draws) && has_other_states());
  for (size_t i = 0; fits && i < node->targets.size(); i++) {  // a target may get another shape
    const auto p = size_t(node->targets[i]);
    const Place &place = p < places_.size() ? *places_[p] : node->places[p - node->first_place];
    fits = place.type.fits(c->out[i].u.t) &&
           storages_[place.storage].address == c->out[i].u.t->storage;
  }
  if (fits && c->form == PLAIT_FUNCTION) fits = take_results(c, node.get());
  node->is_eager = !fits;
  node->end_storage = uint32_t(storages_.size());
  CallNode *added = node.get();
  if (!trie_->add(at_, std::move(node)) || !fits) {
    restart();
    return s;
  }
  for (const Place &each : added->places) places_.push_back(&each);
  at_ = begin_ = added;
  return s;
}

bool Deferral::is_pending(const plait_storage *s) {
  const Lock lock(&mutex_);
  if (pending_.empty()) return false;
  const int64_t known = number_of(s);
  if (known < 0) return false;
  const Storage &storage = storages_[size_t(known)];
  return storage.held &&
         (storage.is_written || (storage.is_made && known >= pending_.front().node->first_storage));
}

// Running.

plait_tensor *Deferral::at(int32_t p) {
  Tensor &t = tensors_[size_t(p)];
  if (t) return t.get();
  const Place &place = *places_[size_t(p)];
  Storage &s = storages_[place.storage];
  if (!s.held) {  // it was given back
    Ref<plait_storage> storage;
    check(runtime->storage_new(runner_, {kDLCPU, 0}, s.nbytes, storage.out()));
    s.hold(storage.get());
    s.origin = static_cast<char *>(storage->data);
  }
  const int64_t *sizes = place.type.sizes.data();
  check(runtime->tensor_on(runner_, s.held.get(), s.origin + place.offset, place.type.dtype,
                           place.type.ndim, sizes, sizes + place.type.ndim, t.out()));
  t.get()->flags |= place.type.flags;
  return t.get();
}

// The memory of results that nobody can see any more; a program has memory of its own for them.
void Deferral::give_back_dead() {
  new_bytes_ = 0;
  for (size_t i = pending_.front().node->first_new_storage; i < storages_.size(); i++) {
    Storage &s = storages_[i];
    if (s.is_made && s.held && __atomic_load_n(&s.held->o.refs, __ATOMIC_ACQUIRE) == 1) s.let_go();
  }
}

std::vector<bool> Deferral::find_alive() const {
  std::vector<bool> result;
  for (const PendingCall &call : pending_)
    for (uint32_t i = call.node->first_new_storage; i < call.node->end_storage; i++) {
      const plait_storage *s = storages_[i].held.get();
      result.push_back(s && __atomic_load_n(&s->o.refs, __ATOMIC_ACQUIRE) > 1);
    }
  return result;
}

void Deferral::run_call(plait_thread *thread, const CallNode &node, const plait_value *numbers) {
  std::vector<plait_value> in, out(node.op->n_results, none());
  std::vector<std::vector<plait_tensor *>> lists;
  lists.reserve(node.in.size());
  for (const Argument &a : node.in) {
    plait_value v = a.value;
    if (v.tag == PLAIT_TENSOR) v.u.t = at(a.places[0]);
    if (v.tag == PLAIT_TENSORS) {
      lists.emplace_back();
      for (const int32_t p : a.places) lists.back().push_back(p < 0 ? nullptr : at(p));
      v = tensors(lists.back().data(), lists.back().size());
    }
    if (a.may_vary) v = *numbers++;
    in.push_back(v);
  }
  plait_call c{};
  c.size = sizeof c;
  c.n_in = uint16_t(in.size());
  c.n_out = uint16_t(out.size());
  c.op = node.op;
  c.in = in.data();
  c.out = out.data();
  c.thread = thread;
  c.form = node.form;
  for (size_t i = 0; i < node.targets.size(); i++) out[i] = value(at(node.targets[i]));
  if (node.form != PLAIT_FUNCTION) return check(runtime->call(&c));
  bool is_whole = !out.empty();
  for (size_t i = 0; i < node.results.size(); i++)
    is_whole &= !node.is_list[i] && node.results[i][0].is_new;
  if (is_whole) {
    for (size_t i = 0; i < out.size(); i++) out[i] = value(at(node.results[i][0].place));
    c.form = PLAIT_OUT;
    return check(runtime->call(&c));
  }
  check(runtime->call(&c));
  static const Operator copy(runtime, "copy_");
  for (size_t i = 0; i < node.results.size(); i++) {
    for (size_t k = 0; k < node.results[i].size(); k++) {
      const Result &r = node.results[i][k];
      if (!r.is_new) continue;
      plait_tensor *from = out[i].tag == PLAIT_TENSOR                    ? out[i].u.t
                           : out[i].tag == PLAIT_TENSORS && k < out[i].n ? out[i].u.ts[k]
                                                                         : nullptr;
      if (!from)
        check(runtime->raise(thread, PLAIT_ERROR, node.op->name,
                             "compile: a deferred call has fewer results than it had before"));
      copy(thread, Tensor::share(at(r.place)), Tensor::share(from));
    }
    runtime->release_value(&out[i]);
  }
}

void Deferral::run_calls(plait_thread *thread, const std::vector<bool> &alive) {
  // memory that nobody keeps is given back after its last use
  std::vector<uint32_t> last(storages_.size(), 0);
  std::vector<bool> is_kept(storages_.size(), true);
  size_t n = 0;
  const auto use = [&](int32_t p, uint32_t i) {
    if (p >= 0) last[place(p).storage] = i;
  };
  for (uint32_t i = 0; i < pending_.size(); i++) {
    const CallNode &node = *pending_[i].node;
    for (uint32_t s = node.first_new_storage; s < node.end_storage; s++) {
      is_kept[s] = alive[n++];
      last[s] = i;
    }
    for (const Argument &a : node.in)
      for (const int32_t p : a.places) use(p, i);
    for (const int32_t p : node.targets) use(p, i);
  }
  std::vector<std::vector<uint32_t>> ends(pending_.size());
  for (uint32_t s = 0; s < last.size(); s++)
    if (!is_kept[s]) ends[last[s]].push_back(s);
  std::vector<std::vector<int32_t>> places(storages_.size());
  for (size_t p = 0; p < places_.size(); p++) places[places_[p]->storage].push_back(int32_t(p));
  plait_generator *g = default_generator();
  const plait_value *numbers = varying_.data();
  for (uint32_t i = 0; i < pending_.size(); i++) {
    const CallNode &node = *pending_[i].node;
    if (node.draws) {
      g->seed = pending_[i].seed;
      set_offset(g, pending_[i].offset);
    }
    if (!node.is_identity) {
      try {
        run_call(thread, node, numbers);
      } catch (const Error &) {
        pending_[i].node->is_eager = true;  // its errors come in time from now on
        throw;
      }
    }
    for (const Argument &a : node.in) numbers += a.may_vary;
    for (const uint32_t s : ends[i]) {
      for (const int32_t p : places[s]) tensors_[size_t(p)] = Tensor();
      storages_[s].let_go();
    }
  }
}

// The segment of the calls that wait; `other` owns one that is not kept.
Segment *Deferral::segment_of(const std::vector<bool> &alive, std::unique_ptr<Segment> *other) {
  auto &segments = pending_.back().node->segments;
  for (const auto &each : segments)
    if (each->generation() == trie_->generation() && each->fits(begin_, alive)) return each.get();
  segments.erase(
      std::remove_if(segments.begin(), segments.end(),
                     [&](const auto &each) { return each->generation() != trie_->generation(); }),
      segments.end());
  std::vector<CallNode *> calls;
  for (const PendingCall &each : pending_) calls.push_back(each.node);
  auto made = std::make_unique<Segment>(begin_, alive, trie_->generation());
  made->count_writes(calls, *this);
  if (segments.size() >= most_segments) {
    *other = std::move(made);
    return other->get();
  }
  segments.push_back(std::move(made));
  return segments.back().get();
}

// Runs what waits; the versions of storages and the generator are then as they were before, because
// calls that wait have counted already.
void Deferral::run(plait_thread *thread) {
  runner_ = thread;
  tensors_.resize(places_.size());
  const std::vector<bool> alive = find_alive();
  std::unique_ptr<Segment> other;
  Segment *segment = segment_of(alive, &other);
  plait_generator *g = segment->draws() ? default_generator() : nullptr;
  const uint64_t seed = g ? g->seed : 0, offset = offset_of(g);
  std::vector<std::pair<Ref<plait_storage>, uint64_t>> versions;
  for (const auto &[s, count] : segment->counts()) {
    plait_storage *storage = storages_[s].held.get();
    const uint64_t version = version_of(storage);
    versions.emplace_back(Ref<plait_storage>::share(storage), version);
    set_version(storage, version - count);
  }
  plait_status s = PLAIT_OK;
  without_host_lock([&] {
    const NoLayers none(thread);
    s = border(thread, "compile", [&] { return run_segment(thread, segment, alive), PLAIT_OK; });
  });
  for (const auto &[storage, version] : versions) set_version(storage.get(), version);
  if (g) {
    g->seed = seed;
    set_offset(g, offset);
  }
  check(s);
}

void Deferral::run_segment(plait_thread *thread, Segment *segment, const std::vector<bool> &alive) {
  if (pending_.size() > 1 && ++segment->runs == 2) {
    std::vector<CallNode *> calls;
    for (const PendingCall &each : pending_) calls.push_back(each.node);
    segment->compile(thread, calls, this);
  }
  if (!segment->program()) return run_calls(thread, alive);
  std::vector<plait_value> numbers;
  const plait_value *number = varying_.data();
  const PendingCall *first = nullptr, *last = nullptr;  // that draw
  for (const PendingCall &each : pending_) {
    for (const Argument &a : each.node->in) {
      if (!a.may_vary) continue;
      if (a.varies && !each.node->is_identity) add_numbers(*number, &numbers);
      number++;
    }
    if (!each.node->draws) continue;
    if (last && (each.seed != last->seed || each.offset != last->offset + last->node->draws))
      return run_calls(thread, alive);  // the function has set the generator
    if (!first) first = &each;
    last = &each;
  }
  if (first) {
    plait_generator *g = default_generator();
    g->seed = first->seed;
    set_offset(g, first->offset);
  }
  segment->run(thread, numbers, this);
}

void Deferral::finish(bool is_done) {
  if (!is_done)
    for (const PendingCall &each : pending_) {
      const char *origin = runner_->error ? runner_->error->origin : nullptr;
      if (origin && std::strcmp(origin, each.node->op->name) == 0) each.node->is_eager = true;
    }
  tensors_.clear();
  pending_.clear();
  varying_.clear();
  lists_.clear();
  new_bytes_ = 0;
  begin_ = at_;
  for (Storage &s : storages_) {
    s.let_go();
    s.is_written = false;
  }
}

plait_status Deferral::flush(plait_thread *thread) {
  const Lock lock(&mutex_);
  if (pending_.empty() || runner_) return PLAIT_OK;
  const plait_status s = border(thread, "compile", [&] {
    run(thread);
    return PLAIT_OK;
  });
  finish(s >= 0);
  runner_ = nullptr;
  if (s >= 0) return s;
  at_ = begin_ = nullptr;
  return name_deferred(thread, s, trie_->name);
}

// Threads.

bool start_deferral(plait_thread *thread, Trie *trie) {
  if (current || is_taken.exchange(true)) return false;
  const auto begin = [&]() -> plait_status {
    if (!layer_bit) {
      uint32_t bit = 0;
      check(runtime->layer(thread, "deferral", position | PLAIT_LAYER_PASSIVE, &bit));
      check(runtime->implement(thread, nullptr, PLAIT_SLOT_LAYER + bit, layer, nullptr, plugin,
                               nullptr));
      layer_bit = uint64_t(1) << bit;
    }
    current = std::make_shared<Deferral>(thread, trie);
    const std::lock_guard<std::mutex> lock(all_mutex);
    all.push_back(current);
    return PLAIT_OK;
  };
  if (border(thread, "compile", begin) < 0) {
    runtime->clear(thread);
    current = nullptr;
    is_taken = false;
    return false;
  }
  thread->included |= layer_bit;
  return true;
}

plait_status stop_deferral(plait_thread *thread) {
  const std::shared_ptr<Deferral> d = std::move(current);
  current = nullptr;
  thread->included &= ~layer_bit;
  const plait_status s = d->flush(thread);
  {
    const std::lock_guard<std::mutex> lock(all_mutex);
    all.erase(std::remove(all.begin(), all.end(), d), all.end());
  }
  is_taken = false;
  return s;
}

plait_status flush_before_read(plait_thread *thread, const plait_tensor *t) {
  if (!(__atomic_load_n(&t->storage->flags, __ATOMIC_RELAXED) & storage_waits)) return PLAIT_OK;
  std::vector<std::shared_ptr<Deferral>> some;
  {
    const std::lock_guard<std::mutex> lock(all_mutex);
    some = all;
  }
  for (const auto &each : some) {
    if (!each->is_pending(t->storage)) continue;
    const plait_status s = each->flush(thread);
    if (s < 0) return s;
    if (each == current) each->restart();
  }
  return PLAIT_OK;
}

}  // namespace plait::graph
