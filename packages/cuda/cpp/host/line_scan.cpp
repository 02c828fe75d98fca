#include "host/line_scan.h"

#include <initializer_list>

namespace plait::cuda {
namespace {

constexpr int64_t kShortLine = 16;  // elements of a line that one thread reads
constexpr int64_t kMostBlocks = 1 << 20;

// Chooses the threads of a line and its pieces, by sizes alone.
void cut(int item, ScanOrder order, ScanArgs *a) {
  const int64_t width = 16 / item;
  int64_t pieces = 1;
  if (order == ScanOrder::kSerial) {
    a->lanes = 1;
  } else if (a->inner > 1 || a->n <= kShortLine) {
    constexpr int64_t kThreads = 65536, kLeast = 64, kMost = 64;
    a->lanes = 1;
    pieces = kThreads / (a->lines + 1);
    if (pieces > a->n / kLeast) pieces = a->n / kLeast;
    if (pieces > kMost) pieces = kMost;
  } else {
    constexpr int64_t kBlocks = 512, kMost = 1024;
    a->lanes = a->n <= 2 * kWarp * width && a->lines > 64 ? kWarp : kScanThreads;
    const int64_t tile = a->lanes * width;
    pieces = kBlocks / (a->lines + 1);
    if (pieces > a->n / (4 * tile)) pieces = a->n / (4 * tile);
    if (pieces > kMost) pieces = kMost;
    a->is_vector = !a->is_reverse && a->n % width == 0;
    for (const void *data :
         {a->x, a->other, static_cast<const void *>(a->y), static_cast<const void *>(a->second)})
      if (reinterpret_cast<uintptr_t>(data) % 16) a->is_vector = 0;
  }
  if (pieces < 1) pieces = 1;
  a->piece = pieces == 1 ? a->n : ceil_div(ceil_div(a->n, pieces), 64) * 64;
  a->pieces = int32_t(ceil_div(a->n, a->piece));
}

}  // namespace

plait_status launch_scan(const plait_call *c, const DeviceKernel &kernel, Kind k, const DLTensor *t,
                         int64_t dim, ScanArgs a, ScanOrder order) {
  const int64_t all = numel(t);
  if (!all) return PLAIT_OK;
  dim = t->ndim ? wrapped(dim, t->ndim) : 0;
  a.n = t->ndim ? t->shape[dim] : 1, a.inner = 1;
  for (int64_t d = dim + 1; d < t->ndim; d++) a.inner *= t->shape[d];
  a.lines = all / a.n;
  cut(size_of(k), order, &a);
  const int64_t blocks = ceil_div(a.lines, kScanThreads / a.lanes);
  const Grid grid(blocks < kMostBlocks ? blocks : kMostBlocks, a.pieces);
  constexpr int64_t kShared = kScanThreads / kWarp * kScanValueBytes;
  DeviceWorkspace space;
  if (a.pieces > 1) {
    PLAIT_TRY(space.take(c, a.lines * a.pieces * kScanValueBytes));
    a.totals = space.data(), a.is_total = 1;
    PLAIT_TRY(launch(c, kernel, k, a, grid, kScanThreads, kShared));
    a.is_total = 0;
  }
  return launch(c, kernel, k, a, grid, kScanThreads, kShared);
}

}  // namespace plait::cuda
