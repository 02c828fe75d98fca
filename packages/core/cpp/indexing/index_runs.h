// An index vector as runs of consecutive indices, so that padded, rolled and sliced rows are moved
// as slices and not as elements.
#pragma once
#include "kernel/kernel.h"

namespace plait::core {

struct IndexRun {  // indices[at + i] is first + i for i < length
  int64_t at, first, length;
};

class IndexRuns {
 public:
  // Indices in [-n, n). A run has at most `longest` of them.
  plait_status read(const plait_call *c, const int64_t *index, int64_t count, int64_t n,
                    int64_t longest) {
    PLAIT_TRY(space_.take(c, uint64_t(count ? count : 1) * sizeof(IndexRun)));
    IndexRun *run = space_.as<IndexRun>();
    count_ = 0;
    for (int64_t i = 0; i < count; i++) {
      const int64_t k = index[i] < 0 ? index[i] + n : index[i];
      if (count_ && k == run[count_ - 1].first + run[count_ - 1].length &&
          run[count_ - 1].length < longest) {
        run[count_ - 1].length++;
      } else {
        run[count_++] = {i, k, 1};
      }
    }
    return PLAIT_OK;
  }
  int64_t count() const { return count_; }
  const IndexRun &operator[](int64_t i) const { return space_.as<IndexRun>()[i]; }

 private:
  Workspace space_;
  int64_t count_ = 0;
};

inline bool any_negative(const int64_t *index, int64_t count) {
  int64_t all = 0;
  for (int64_t i = 0; i < count; i++) all |= index[i];
  return all < 0;
}

// Whether there are so few runs that they pay.
inline bool has_runs(const int64_t *index, int64_t count) {
  int64_t breaks = 1;
  for (int64_t i = 1; i < count; i++) breaks += index[i] != index[i - 1] + 1;
  return breaks * 4 <= count;
}

}  // namespace plait::core
