// A call that the trie does not have becomes a node of it.
#include <algorithm>

#include <plait/layer.hpp>

#include "deferral/deferred_calls.hpp"

namespace plait::graph {
namespace {

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

bool has_other_states() {
  const auto *rng = role<plait_rng>(runtime);
  return PLAIT_HAS(plait_rng, rng, state_size);
}

}  // namespace

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

}  // namespace plait::graph
