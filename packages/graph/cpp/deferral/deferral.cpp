#include "deferral/deferral.hpp"

#include <algorithm>
#include <atomic>

#include <plait/layer.hpp>

#include "deferral/deferred_calls.hpp"

namespace plait::graph {

uint64_t deferral_layer;

namespace {

constexpr uint32_t position = 18;  // below the layers that take calls apart
thread_local std::shared_ptr<Deferral> current;

// Whether a thread defers calls: one does at a time, as another could read what waits in it.
std::atomic<bool> is_taken{false};

// What defers calls, of the thread that does so now; NULL before the first one.
auto &last_mutex = *new std::mutex;
auto &last = *new std::shared_ptr<Deferral>;
std::shared_ptr<Deferral> last_deferral() {
  const std::lock_guard<std::mutex> lock(last_mutex);
  return last;
}

// Results that nobody holds are given back each time when so many bytes are new.
constexpr uint64_t most_new_bytes = uint64_t(64) << 20;
constexpr size_t most_calls = 8192;

// The layer does not see what a call consists of.
class Below {
 public:
  explicit Below(plait_thread *t) : thread_(t), excluded_(t->excluded) {
    t->excluded |= deferral_layer;
  }
  Below(const Below &) = delete;
  Below &operator=(const Below &) = delete;
  ~Below() { thread_->excluded = excluded_; }

 private:
  plait_thread *thread_;
  uint64_t excluded_;
};

// Calls of threads that defer nothing, on tensors that wait for the calls of another one.
plait_status flush_others(plait_call *c) {
  const std::shared_ptr<Deferral> d = last_deferral();
  bool waits = false;
  if (d)
    plait::graph::each_tensor(
        c, [&](const plait_tensor *t) { waits = waits || d->is_pending(t->storage); });
  return waits ? d->flush(c->thread) : plait_status(PLAIT_OK);
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

void Deferral::begin(plait_thread *thread, Trie *trie) {
  const Lock lock(&mutex_);
  thread_ = thread;
  trie_ = trie;
  restart();
}

plait_status Deferral::end() {
  const Lock lock(&mutex_);
  const plait_status s = flush(thread_);
  root_ = at_ = begin_ = nullptr;
  truncate(0, 0);
  return s;
}

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

plait_status Deferral::call(plait_call *c) {
  if (c->op->flags & PLAIT_OP_VIEW) {  // it needs no elements
    bool is_marked = false;
    each_tensor(c, [&](const plait_tensor *t) { is_marked |= (t->layers & deferral_layer) != 0; });
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

// Storages.

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

bool Deferral::is_pending(const plait_storage *s) {
  const Lock lock(&mutex_);
  if (pending_.empty()) return false;
  const int64_t known = number_of(s);
  if (known < 0) return false;
  const Storage &storage = storages_[size_t(known)];
  return storage.held &&
         (storage.is_written || (storage.is_made && known >= pending_.front().node->first_storage));
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
  result.get()->layers |= deferral_layer;
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

// Threads.

bool start_deferral(plait_thread *thread, Trie *trie) {
  if (current || is_taken.exchange(true)) return false;
  const auto begin = [&]() -> plait_status {
    if (!deferral_layer) {
      uint32_t bit = 0;
      check(runtime->layer(thread, "deferral", position | PLAIT_LAYER_PASSIVE, &bit));
      check(runtime->implement(thread, nullptr, PLAIT_SLOT_LAYER + bit, layer, nullptr, plugin,
                               nullptr));
      deferral_layer = uint64_t(1) << bit;
    }
    {
      const std::lock_guard<std::mutex> lock(last_mutex);
      if (!last) last = std::make_shared<Deferral>();
      current = last;
    }
    current->begin(thread, trie);
    return PLAIT_OK;
  };
  if (border(thread, "compile", begin) < 0) {
    runtime->clear(thread);
    current = nullptr;
    is_taken = false;
    return false;
  }
  thread->included |= deferral_layer;
  return true;
}

uint64_t layer_of_deferral() { return deferral_layer; }

plait_status stop_deferral(plait_thread *thread) {
  const std::shared_ptr<Deferral> d = std::move(current);
  current = nullptr;
  thread->included &= ~deferral_layer;
  const plait_status s = d->end();
  is_taken = false;
  return s;
}

plait_status flush_before_read(plait_thread *thread, const plait_tensor *t) {
  if (!(__atomic_load_n(&t->storage->flags, __ATOMIC_RELAXED) & storage_waits)) return PLAIT_OK;
  const std::shared_ptr<Deferral> d = last_deferral();
  if (!d || !d->is_pending(t->storage)) return PLAIT_OK;
  const plait_status s = d->flush(thread);
  if (s >= 0 && d == current) d->restart();
  return s;
}

}  // namespace plait::graph
