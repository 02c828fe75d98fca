// The storages of batched tensors, and tensors that a call of vmap has made, whose storages become
// batched when values that differ between samples are written to them (docs/design/0043).
#include "batched.hpp"

#include <plait/layer.hpp>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <unordered_map>

namespace plait::func {
namespace {

void drop_grown(void *, void *data, uint64_t nbytes, void *block) {
  auto *b = static_cast<Batch *>(block);
  if (b->allocator) b->allocator->free(b->allocator->ctx, data, nbytes, b->block);
  plait_release(b->value);
  delete b;
}
// It only frees: observers hear of the memory of such a storage as they did before.
const plait_allocator grown_memory = [] {
  plait_allocator t{};
  t.h = PLAIT_HEADER(plait_allocator);
  t.name = "vmap";
  t.free = drop_grown;
  return t;
}();

// The layout of a sample of a value.
struct SampleLayout {
  int64_t count = 1, scale = 0;  // elements of its memory; see Batch
  int64_t strides[PLAIT_MAX_DIMS];

  explicit SampleLayout(const DLTensor &value) {
    for (int i = 1; i < value.ndim; i++) count *= value.shape[i];
    if (!value.strides || !count) return;
    int64_t factor = 0;
    for (int i = 1; i < value.ndim; i++) {
      if (value.shape[i] == 1) continue;
      if (value.strides[i] < 0) return;
      factor = std::gcd(factor, value.strides[i]);
    }
    scale = std::max<int64_t>(factor, 1);
    count = 1;
    for (int i = value.ndim - 1; i > 0; i--) {
      strides[i - 1] = value.shape[i] == 1 ? count : value.strides[i] / scale;
      count += (value.shape[i] - 1) * strides[i - 1];
    }
  }
};

// The calls of vmap that this thread is in, and operators on batched tensors of calls that have
// ended, of which the parts of a decomposition are seen.
thread_local std::vector<Scope> scopes;
// The storages that were made in them, each with the innermost level that it was made in, and
// whether tensors on it have a history of operators. Others may take the address of one that was
// freed; it was made within the call all the same.
struct Made {
  int64_t level;
  bool recorded = false;
};
thread_local std::unordered_map<const plait_storage *, Made> fresh;

// The storage of a tensor and those that it stands for, with the level that each belongs to less
// than.
template <class F>
void each_storage(plait_tensor *t, F &&f) {
  int64_t below = INT64_MAX;
  for (const Batch *b; t; t = b ? marked(b->value) : nullptr) {
    b = batch_of(t);
    f(t->storage, below);
    if (b) below = b->level;
  }
}

// Lets a storage stand for one of each sample, with copies of its bytes. PLAIT_DECLINE if its
// memory is not plain memory of the host, which only tensors use.
constexpr uint64_t foreign = PLAIT_STORAGE_READONLY | PLAIT_STORAGE_EXTERNAL |
                             PLAIT_STORAGE_SHARED | PLAIT_STORAGE_MAPPED | PLAIT_STORAGE_EXPORTED |
                             PLAIT_STORAGE_PINNED;
plait_status grow(plait_thread *thread, plait_storage *storage, const Scope &to,
                  plait_storage **rows) {
  if (storage->device.device_type != kDLCPU || storage->release || storage->flags & foreign)
    return PLAIT_DECLINE;
  constexpr int64_t step = 16;  // a multiple of all item sizes
  const auto nbytes = int64_t(storage->nbytes);
  const int64_t shape[]{to.size, std::max((nbytes + step - 1) / step * step, step)};
  plait_tensor *value = nullptr;
  const plait_status s =
      thread->runtime->tensor_new(thread, dtype::uint8, 2, shape, nullptr, storage->device, &value);
  if (s < 0) return s;
  for (int64_t i = 0; i < shape[0] && nbytes; i++)
    std::memcpy(static_cast<char *>(value->dl.data) + i * shape[1], storage->data, size_t(nbytes));
  storage->block =
      new Batch{value, to.level, storage->data, 1, shape[1], storage->allocator, storage->block};
  storage->allocator = &grown_memory;
  storage->release = drop_batch;
  *rows = value->storage;
  return PLAIT_OK;
}

bool has_ended(int64_t level) {
  return std::none_of(scopes.begin(), scopes.end(),
                      [&](const Scope &each) { return each.level == level && !each.ended; });
}

}  // namespace

void drop_batch(void *block) {
  auto *b = static_cast<Batch *>(block);
  plait_release(b->value);
  std::free(b->memory);
  delete b;
}

bool has_rows(const plait_tensor *t) {
  if (t->storage->release != drop_batch)
    return !(t->layers & layers_of_bytes) && !t->slot[3] && t->dl.device.device_type == kDLCPU;
  const Batch *b = batch_of(t);
  if (!b) return false;
  if (row_of(*b)) return true;
  const DLTensor &dl = b->value->dl;
  if (!b->scale || !has_rows(b->value)) return false;
  constexpr int64_t any = 16;  // of one sample or none: a multiple of all item sizes
  const int64_t row = dl.shape[0] > 1 && numel(t) ? dl.strides[0] * itemsize(dl.dtype) : any;
  if (row <= 0) return false;
  __atomic_store_n(&const_cast<Batch *>(b)->row, row, __ATOMIC_RELEASE);
  return true;
}

plait_status rows_of(plait_thread *thread, const plait_tensor *t, const Batch &b,
                     plait_tensor **out) {
  const DLTensor &dl = t->dl;
  int64_t shape[PLAIT_MAX_DIMS + 1], strides[PLAIT_MAX_DIMS + 1];
  shape[0] = b.value->dl.shape[0];
  strides[0] = row_of(b) / itemsize(dl.dtype);
  for (int i = 0; i < dl.ndim; i++) {
    shape[i + 1] = dl.shape[i];
    strides[i + 1] = dl.strides[i] * b.scale;
  }
  auto *first = static_cast<char *>(b.value->dl.data);
  if (first && dl.data)
    first += (static_cast<char *>(dl.data) - static_cast<char *>(b.memory)) * b.scale;
  const plait_status s = thread->runtime->tensor_on(thread, b.value->storage, first, dl.dtype,
                                                    dl.ndim + 1, shape, strides, out);
  if (s >= 0) marked(*out);
  return s;
}

plait_status make_batched(plait_thread *thread, plait_tensor *value, int64_t level,
                          plait_tensor **out) {
  const plait_runtime *runtime = thread->runtime;
  const SampleLayout layout(value->dl);
  const auto nbytes = uint64_t(layout.count * itemsize(value->dl.dtype));
  auto *b = new Batch{value, level, std::malloc(nbytes ? nbytes : 1), layout.scale};
  plait_storage *storage = nullptr;
  plait_status s = b->memory ? runtime->storage_wrap(thread, b->memory, nbytes, value->dl.device, 0,
                                                     drop_batch, b, &storage)
                             : runtime->raise(thread, PLAIT_MEMORY_ERROR, "vmap", "out of memory");
  if (s < 0) {
    drop_batch(b);
    return s;
  }
  s = runtime->tensor_on(thread, storage, b->memory, value->dl.dtype, value->dl.ndim - 1,
                         value->dl.shape + 1, layout.scale ? layout.strides : nullptr, out);
  plait_release(storage);
  if (s >= 0) (*out)->layers |= layer_bit | sharing_bit;
  return s;
}

plait_tensor *samples_at(const plait_tensor *t, int64_t level) {
  const Batch *b = batch_of(t);
  if (!b || b->level != level) return nullptr;
  if (!row_of(*b)) {
    plait_retain(b->value);
    return marked(b->value);
  }
  plait_thread *thread = state.runtime->thread();
  plait_tensor *result = nullptr;
  const plait_status s = rows_of(thread, t, *b, &result);
  if (s < 0) state.python->raise(thread, s);
  return result;
}

plait_tensor *all_samples(const plait_tensor *t, int64_t *level) {
  const Batch *b = batch_of(t);
  if (b) *level = b->level;
  return b ? samples_at(t, b->level) : nullptr;
}

void open_scope(int64_t level, int64_t size, bool ended) { scopes.push_back({level, size, ended}); }

void close_scope() {
  const int64_t ended = scopes.back().level;
  scopes.pop_back();
  if (scopes.empty()) return fresh.clear();
  for (auto &[storage, made] : fresh)
    if (made.level == ended) made.level = scopes.back().level;
}

std::vector<Scope> leave_scopes(int64_t level) {
  const auto first = std::find_if(scopes.begin(), scopes.end(),
                                  [&](const Scope &each) { return each.level >= level; });
  const std::vector<Scope> left(first, scopes.end());
  scopes.erase(first, scopes.end());
  return left;
}

void enter_scopes(const std::vector<Scope> &list) {
  scopes.insert(scopes.end(), list.begin(), list.end());
}

void note_fresh(const plait_tensor *t) {
  if (!scopes.empty()) fresh[t->storage] = {scopes.back().level};
}

// Whether the engine, above this layer, records a call with new numbers.
bool is_recorded_call(const plait_call *c) {
  const plait_engine *e = role<plait_engine>(c->thread->runtime);
  if (!e || !c->op->def->vjp || c->op->flags & PLAIT_OP_VIEW || !e->enabled(e->ctx, c->thread))
    return false;
  bool any = false;
  each_tensor(c->in, c->n_in, [&](const plait_tensor *t) { any |= t->layers >> e->layer & 1; });
  return any;
}

void note_results(const plait_call *c) {
  if (scopes.empty()) return;
  const bool recorded = is_recorded_call(c);
  std::vector<const plait_storage *> storages;
  bool any = false;
  each_tensor(c->out, c->n_out,
              [&](const plait_tensor *t) { any |= scopes.size() > 1 || !batch_of(t); });
  if (!any) return;
  each_tensor(c->in, c->n_in, [&](plait_tensor *t) {
    each_storage(t, [&](const plait_storage *s, int64_t) { storages.push_back(s); });
  });
  each_tensor(c->out, c->n_out, [&](plait_tensor *t) {
    each_storage(t, [&](const plait_storage *s, int64_t below) {
      if (std::find(storages.begin(), storages.end(), s) == storages.end())
        fresh[s] = {std::min(scopes.back().level, below - 1)};
      const auto created = recorded ? fresh.find(s) : fresh.end();
      if (created != fresh.end()) created->second.recorded = true;
    });
  });
}

// Whether a storage was made within a call. Behind its call of vmap only derivatives write what
// differs between its samples, to what their formulas have made.
bool made_within(const plait_storage *storage, int64_t level) {
  const auto it = fresh.find(storage);
  return has_ended(level) || (it != fresh.end() && it->second.level >= level);
}

void note_recorded(const plait_tensor *t) {
  const auto it = fresh.find(t->storage);
  if (it != fresh.end()) it->second.recorded = true;
}

bool is_recorded(const plait_tensor *t) {
  const auto it = fresh.find(t->storage);
  return it != fresh.end() && it->second.recorded;
}

plait_status become_batched(plait_thread *thread, plait_tensor *t, const Scope &to) {
  if (!made_within(t->storage, to.level)) return PLAIT_DECLINE;
  plait_storage *rows = nullptr;
  const plait_status s = grow(thread, t->storage, to, &rows);
  if (s != PLAIT_OK) return s;
  fresh[rows] = {to.level - 1};
  marked(t);
  return PLAIT_OK;
}

plait_status memory_within(plait_thread *thread, const plait_tensor *t, int64_t level,
                           plait_tensor **out) {
  const Batch *b = batch_of(t);
  if (!b || b->level >= level || !b->scale || !made_within(t->storage, level)) return PLAIT_DECLINE;
  const DLTensor &value = b->value->dl;
  const int64_t shape[]{value.shape[0], int64_t(t->storage->nbytes) / itemsize(value.dtype)},
      strides[]{value.strides[0], b->scale};
  const plait_status s = thread->runtime->tensor_on(thread, b->value->storage, value.data,
                                                    value.dtype, 2, shape, strides, out);
  if (s >= 0) marked(*out);
  return s;
}

bool set_rows(const plait_tensor *t, plait_tensor *rows, int64_t level) {
  if (!has_rows(rows)) return plait_release(rows), false;
  auto *b = const_cast<Batch *>(batch_of(t));
  plait_release(std::exchange(b->value, rows));
  b->level = level;
  b->scale = 1;
  fresh[rows->storage] = {level - 1};
  __atomic_store_n(&b->row, rows->dl.strides[0] * itemsize(rows->dl.dtype), __ATOMIC_RELEASE);
  return true;
}

Serving::Serving(plait_thread *thread, const Samples &samples)
    : thread_(thread), included_(thread->included) {
  const auto is_open = [&](const Scope &each) { return each.level == samples.level; };
  if (std::any_of(scopes.begin(), scopes.end(), is_open)) return;
  alone_ = true;
  open_scope(samples.level, samples.size, true);
  thread->included |= layer_bit;
}

Serving::~Serving() {
  if (!alone_) return;
  thread_->included = included_;
  close_scope();
}

}  // namespace plait::func
