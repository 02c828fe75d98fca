#include "kernel/tuning.h"

#include "kernel/settings.h"
#include "kernel/tuning_tables.h"
#include "linalg/tile.h"

namespace plait::core {
namespace {

uint8_t capped(int64_t x) { return uint8_t(x < 255 ? x : 255); }
uint8_t log_of(int64_t x) { return x > 1 ? uint8_t(63 - __builtin_clzll(uint64_t(x))) : 0; }

// An algorithm for all convolutions, for measurements.
constexpr int kByTable = -2;
int forced = kByTable;

const Table &family() {
  static const Table table = [] {
#if defined(__AVX2__) && defined(__x86_64__)
    if (__builtin_cpu_is("amd"))
      return has_wide_tiles() ? table_of(kAmdAvx512) : table_of(kAmdAvx2);
    if (__builtin_cpu_is("intel"))
      return has_wide_tiles() ? table_of(kIntelAvx512) : table_of(kIntelAvx2);
#endif
    return Table{nullptr, 0};
  }();
  return table;
}

}  // namespace

ConvolutionClass::ConvolutionClass(ConvolutionPass pass_, int64_t window_, int64_t stride_,
                                   int64_t images, int64_t channels_, int64_t filters_,
                                   int64_t side_)
    : pass(pass_),
      window(capped(window_)),
      stride(capped(stride_)),
      batch(images < 4    ? 0
            : images < 16 ? 1
                          : 2),
      channels(log_of(channels_)),
      filters(log_of(filters_)),
      side(log_of(side_)) {}

uint64_t ConvolutionClass::key() const {
  uint64_t key = 0;
  const uint8_t parts[] = {uint8_t(pass), window, stride, batch, channels, filters, side};
  for (const uint8_t part : parts) key = key << 8 | part;
  return key;
}

Algorithm tuned(const ConvolutionClass &shape) {
  if (reproducible()) return Algorithm::ByRule;  // a table is of one processor
  const int asked = __atomic_load_n(&forced, __ATOMIC_RELAXED);
  if (asked != kByTable) return Algorithm(asked);
  const Table &table = family();
  const uint64_t key = shape.key();
  int64_t low = 0, high = table.count;
  while (low < high) {
    const int64_t middle = (low + high) / 2;
    if (table.rows[middle].key < key)
      low = middle + 1;
    else
      high = middle;
  }
  return low < table.count && table.rows[low].key == key ? table.rows[low].algorithm
                                                         : Algorithm::ByRule;
}

}  // namespace plait::core

// For benchmarks/tune.py: an Algorithm for all convolutions that can be computed by it; -1: the
// rules for all; -2: what the table has, as at first.
extern "C" __attribute__((visibility("default"))) void plait_core_force_algorithm(int algorithm) {
  __atomic_store_n(&plait::core::forced, algorithm, __ATOMIC_RELAXED);
}
