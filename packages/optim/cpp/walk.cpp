#include "walk.hpp"

#include <algorithm>
#include <vector>

#include "blocks.hpp"

namespace plait::optim {
namespace {

// Below this many elements a hand-over to other threads costs more than it saves; a piece fits into
// a core's second-level cache.
constexpr int64_t parallel_elements = 1 << 16, piece_elements = 1 << 14;

// Whether the elements have no gaps, in any order of dimensions.
bool is_dense(const plait_tensor *t) {
  const int n = t->dl.ndim;
  int order[PLAIT_MAX_DIMS];
  int used = 0;
  for (int i = 0; i < n; i++)
    if (t->dl.shape[i] != 1) order[used++] = i;
  std::sort(order, order + used, [&](int a, int b) { return t->dl.strides[a] < t->dl.strides[b]; });
  int64_t want = 1;
  for (int k = 0; k < used; k++) {
    if (t->dl.strides[order[k]] != want) return false;
    want *= t->dl.shape[order[k]];
  }
  return true;
}

bool same_strides(const plait_tensor *a, const plait_tensor *b) {
  for (int i = 0; i < a->dl.ndim; i++)
    if (a->dl.shape[i] != 1 && a->dl.strides[i] != b->dl.strides[i]) return false;
  return true;
}

// Whether all operands have the same order in memory: then the update is one flat loop.
bool is_flat(const Lists &lists, uint32_t i) {
  const plait_tensor *p = lists.at(0, i);
  const bool contiguous = is_contiguous(p);
  if (!contiguous && !is_dense(p)) return false;
  for (uint32_t k = 1; k < lists.n_lists; k++) {
    if (!lists.has(k)) continue;
    const plait_tensor *t = lists.at(k, i);
    if (contiguous ? !is_contiguous(t) : !same_strides(p, t)) return false;
  }
  return true;
}

void apply_flat(const Update &update, uint32_t i, int64_t start, int64_t count) {
  const Lists &lists = update.lists;
  void *data[max_operands] = {};
  for (uint32_t k = 0; k < lists.n_lists; k++)
    if (lists.has(k)) {
      const DLTensor &dl = lists.at(k, i)->dl;
      data[k] = static_cast<char *>(dl.data) + start * (dl.dtype.bits / 8);
    }
  update.apply(i, data, count);
}

void apply_blocks(const Update &update, uint32_t i, bool flat, int64_t start, int64_t count) {
  const Lists &lists = update.lists;
  Block blocks[max_operands];
  for (const int64_t end = start + count; start < end; start += block_elements) {
    const int64_t n = std::min(block_elements, end - start);
    void *data[max_operands] = {};
    for (uint32_t k = 0; k < lists.n_lists; k++)
      if (lists.has(k)) {
        data[k] = blocks[k];
        gather(lists.at(k, i), flat, start, n, blocks[k]);
      }
    update.apply(i, data, n);
    for (uint32_t k = 0; k < lists.n_lists; k++)
      if (data[k] && (update.written >> k & 1)) scatter(lists.at(k, i), flat, start, n, blocks[k]);
  }
}

struct Piece {
  uint32_t i;
  bool flat;
  int64_t start, count;
};

void apply(const Update &update, const Piece &piece) {
  if (piece.flat && !is_half(update.lists.at(0, piece.i)->dl.dtype))
    apply_flat(update, piece.i, piece.start, piece.count);
  else
    apply_blocks(update, piece.i, piece.flat, piece.start, piece.count);
}

// Two parameters that share bytes (a parameter given twice, a view of another) must be updated one
// after the other.
bool share_memory(const Lists &lists) {
  auto &ranges = scratch<std::pair<const char *, const char *>>();
  for (uint32_t i = 0; i < lists.length; i++) {
    const plait_tensor *p = lists.at(0, i);
    if (numel(p) == 0) continue;
    const char *low = static_cast<const char *>(p->dl.data), *high = low;
    for (int d = 0; d < p->dl.ndim; d++) {
      const int64_t reach = (p->dl.shape[d] - 1) * p->dl.strides[d] * (p->dl.dtype.bits / 8);
      (reach < 0 ? low : high) += reach;
    }
    ranges.emplace_back(low, high + p->dl.dtype.bits / 8);
  }
  std::sort(ranges.begin(), ranges.end());
  for (size_t i = 1; i < ranges.size(); i++)
    if (ranges[i].first < ranges[i - 1].second) return true;
  return false;
}

// A job is a run of pieces with about piece_elements in all, so that many small tensors make few
// jobs.
struct Plan {
  const Update *update;
  std::vector<Piece> &pieces;
  std::vector<size_t> &starts;
};

Plan make_plan(const Update &update) {
  Plan plan{&update, scratch<Piece>(), scratch<size_t>()};
  plan.starts.push_back(0);
  int64_t filled = 0;
  for (uint32_t i = 0; i < update.lists.length; i++) {
    const bool flat = is_flat(update.lists, i);
    const int64_t n = numel(update.lists.at(0, i));
    for (int64_t start = 0; start < n; start += piece_elements) {
      const int64_t count = std::min(piece_elements, n - start);
      plan.pieces.push_back({i, flat, start, count});
      filled += count;
      if (filled >= piece_elements) {
        plan.starts.push_back(plan.pieces.size());
        filled = 0;
      }
    }
  }
  if (plan.starts.back() != plan.pieces.size()) plan.starts.push_back(plan.pieces.size());
  return plan;
}

}  // namespace

void run(const plait_call *call, const Update &update) {
  const Lists &lists = update.lists;
  const plait_executor *executor = role<plait_executor>(call->thread->runtime);
  int64_t total = 0;
  for (uint32_t i = 0; i < lists.length; i++) total += numel(lists.at(0, i));
  if (total < parallel_elements || executor->width(executor->ctx) == 1 || share_memory(lists)) {
    for (uint32_t i = 0; i < lists.length; i++)
      if (const int64_t n = numel(lists.at(0, i))) apply(update, {i, is_flat(lists, i), 0, n});
    return;
  }
  const Plan plan = make_plan(update);
  executor->parallel(
      executor->ctx, plan.starts.size() - 1,
      [](void *arg, uint64_t job) {
        const Plan &p = *static_cast<const Plan *>(arg);
        for (size_t j = p.starts[job]; j < p.starts[job + 1]; j++) apply(*p.update, p.pieces[j]);
      },
      const_cast<Plan *>(&plan));
}

}  // namespace plait::optim
