// Runs of the calls that wait.
#include <algorithm>

#include <plait/layer.hpp>

#include "deferral/deferred_calls.hpp"

namespace plait::graph {
namespace {

constexpr size_t most_segments = 8;

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

}  // namespace

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

}  // namespace plait::graph
