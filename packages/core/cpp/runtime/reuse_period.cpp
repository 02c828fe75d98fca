// How long free blocks are kept: see docs/design/0027.
#include "blocks.hpp"

namespace plait::core {
namespace {

constexpr int64_t kSecond = 1000000000;
constexpr int64_t kShortest = kSecond, kLongest = 10 * kSecond;
constexpr int64_t kTogether =
    kSecond / 10;  // blocks that are freed within this time count as one release

}  // namespace

int64_t ReusePeriod::longest(int64_t now) const {
  const int64_t faded = longest_ - (now - seen_) / 8;
  return faded > 0 ? faded : 0;
}

int64_t ReusePeriod::at(int64_t now) const {
  const int64_t longer = longest(now) * 3 / 2;
  return longer < kShortest ? kShortest : longer < kLongest ? longer : kLongest;
}

void ReusePeriod::reused(int64_t age, int64_t now) {
  if (age <= longest(now)) return;
  longest_ = age < kLongest ? age : kLongest;
  seen_ = now;
}

void ReusePeriod::released(uint64_t bytes, int64_t freed) {
  Release &last = releases_[last_ % kReleases];
  if (last.bytes && freed - last.freed < kTogether && last.freed - freed < kTogether) {
    last.bytes += bytes;
  } else {
    releases_[++last_ % kReleases] = {freed, bytes};
  }
}

void ReusePeriod::mapped(uint64_t bytes, int64_t now) {
  for (uint32_t i = 0; i < kReleases && bytes; i++) {
    Release &r = releases_[(last_ - i) % kReleases];
    if (!r.bytes || now - r.freed > kLongest) continue;
    const uint64_t part = r.bytes < bytes ? r.bytes : bytes;
    r.bytes -= part;
    bytes -= part;
    reused(now - r.freed, now);
  }
}

}  // namespace plait::core
