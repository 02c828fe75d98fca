// Written by `nox -s tune`, which keeps the tables of other families. Rows are in the order of
// their keys: pass, window, stride, batch, channels, filters, side, a byte each.
#ifndef PLAIT_CORE_TUNING_TABLES_H
#define PLAIT_CORE_TUNING_TABLES_H
#include "kernel/tuning.h"

namespace plait::core {

struct TableRow {
  uint64_t key;
  Algorithm algorithm;
};
struct Table {
  const TableRow *rows;
  int64_t count;
};

// The last row has the largest key, so that no table is empty.
constexpr TableRow kAmdAvx2[] = {
    {0x00030100010607, Algorithm::Columns},  // 1.18: 3-64, 3x3 by 1 @224, batch 1, forward
    {0x00030101010607, Algorithm::Columns},  // 1.16: 3-64, 3x3 by 1 @224, batch 8, forward
    {0x01010101050406, Algorithm::Pixels},  // 1.23: 32-16, 1x1 by 1 @112, batch 8, by input
    {0x01010101060405, Algorithm::Columns},  // 1.25: 96-24, 1x1 by 1 @56, batch 8, by input
    {0x01010101070405, Algorithm::Columns},  // 1.23: 144-24, 1x1 by 1 @56, batch 8, by input
    {0x010101010a0903, Algorithm::Pixels},  // 1.12: 1024-512, 1x1 by 1 @14, batch 8, by input
    {0x010101020a0803, Algorithm::Pixels},  // 1.20: 1024-256, 1x1 by 1 @14, batch 32, by input
    {0x02030100010607, Algorithm::Tiles4},  // 1.34: 3-64, 3x3 by 1 @224, batch 1, by weight
    {0x02030101010607, Algorithm::Tiles4},  // 1.42: 3-64, 3x3 by 1 @224, batch 8, by weight
    {0x02030201010507, Algorithm::Columns},  // 1.15: 3-32, 3x3 by 2 @224, batch 8, by weight
    {0x02030202010507, Algorithm::Columns},  // 1.13: 3-32, 3x3 by 2 @224, batch 32, by weight
    {~uint64_t(0), Algorithm::ByRule},
};
constexpr TableRow kAmdAvx512[] = {
    {0x00010200090a04, Algorithm::Pixels},  // 1.13: 512-1024, 1x1 by 2 @28, batch 1, forward
    {0x000102000a0b03, Algorithm::Pixels},  // 1.51: 1024-2048, 1x1 by 2 @14, batch 1, forward
    {0x00030100010607, Algorithm::Columns},  // 1.29: 3-64, 3x3 by 1 @224, batch 1, forward
    {0x00030101010607, Algorithm::Columns},  // 1.29: 3-64, 3x3 by 1 @224, batch 8, forward
    {0x01010101050406, Algorithm::Pixels},  // 1.21: 32-16, 1x1 by 1 @112, batch 8, by input
    {0x01010101060405, Algorithm::Columns},  // 1.25: 96-24, 1x1 by 1 @56, batch 8, by input
    {0x01010101070405, Algorithm::Columns},  // 1.31: 144-24, 1x1 by 1 @56, batch 8, by input
    {0x01010101070504, Algorithm::Columns},  // 1.26: 144-32, 1x1 by 1 @28, batch 8, by input
    {0x010101020a0803, Algorithm::Pixels},  // 1.10: 1024-256, 1x1 by 1 @14, batch 32, by input
    {0x02030100010607, Algorithm::Tiles4},  // 1.17: 3-64, 3x3 by 1 @224, batch 1, by weight
    {0x02030101010607, Algorithm::Tiles4},  // 1.33: 3-64, 3x3 by 1 @224, batch 8, by weight
    {~uint64_t(0), Algorithm::ByRule},
};
constexpr TableRow kIntelAvx2[] = {{~uint64_t(0), Algorithm::ByRule}};
constexpr TableRow kIntelAvx512[] = {{~uint64_t(0), Algorithm::ByRule}};

template <int64_t n>
Table table_of(const TableRow (&rows)[n]) {
  return {rows, n};
}

}  // namespace plait::core
#endif  // PLAIT_CORE_TUNING_TABLES_H
