#include "emulation/kernels/shadow.h"

#include "emulation/kernels/team.h"

namespace plait::cuda::emulation {
namespace {

bool conflicts(const Shadow &shadow, const GlobalTouch &before, const GlobalTouch &now) {
  if (!before.site.file || (before.atomic && now.atomic)) return false;
  if (before.block != now.block) {
    const auto there = shadow.updated.find(before.block);
    return there == shadow.updated.end() || there->second < before.time ||
           !shadow.updated.count(now.block);
  }
  if (before.thread == now.thread || before.epoch != now.epoch) return false;
  return before.thread / kWarp != now.thread / kWarp || before.phase == now.phase;
}

[[noreturn]] void refuse(const GlobalView &view, int64_t i, Access access, Site site,
                         const GlobalTouch &before, bool wrote) {
  const Launch &launch = *view.state->launch;
  trap(*view.state, view.thread, site, driver::kLaunchFailed,
       "it %s element %lld of global memory at 0x%llx, which thread %u of block (%llu, %llu, %llu) "
       "%s at %s:%d; nothing orders them",
       access == kRead    ? "reads"
       : access == kWrite ? "writes"
                          : "updates",
       static_cast<long long>(i), static_cast<unsigned long long>(view.address),
       unsigned(before.thread), static_cast<unsigned long long>(before.block % launch.grid[0]),
       static_cast<unsigned long long>(before.block / launch.grid[0] % launch.grid[1]),
       static_cast<unsigned long long>(before.block / launch.grid[0] / launch.grid[1]),
       before.atomic ? "updated"
       : wrote       ? "wrote"
                     : "read",
       stem(before.site.file), before.site.line);
}

GlobalTouch touch_of(const GlobalView &view, Access access, Site site) {
  const BlockState &state = *view.state;
  const Launch &launch = *state.launch;
  GlobalTouch now;
  now.site = site;
  now.block = (uint64_t(state.z) * launch.grid[1] + state.y) * launch.grid[0] + state.x;
  now.time = ++state.shadow->time;
  now.thread = uint16_t(view.thread);
  now.atomic = access == kAtomic;
  if (launch.entry->has_barriers) {
    now.epoch = state.team->epoch;
    now.phase = state.team->warp[view.thread / kWarp].phase;
  }
  return now;
}

}  // namespace

void record_global(const GlobalView &view, int64_t i, int count, Access access, Site site,
                   Repetition repetition) {
  Shadow &shadow = *view.state->shadow;
  GlobalTouch now = touch_of(view, access, site);
  now.may_repeat = repetition.is_allowed;
  const int step = view.size < 4 ? view.size : 4;
  const uintptr_t address = view.address + uintptr_t(i * view.size);
  for (int b = 0; b < view.size * count; b += step) {
    GlobalCell &cell = shadow.cells[address + uintptr_t(b)];
    const bool is_repeated = cell.write.may_repeat && repetition.is_equal;
    if (!is_repeated && conflicts(shadow, cell.write, now))
      refuse(view, i + b / view.size, access, site, cell.write, true);
    if (access == kRead) {
      const GlobalTouch &first = cell.read[0];
      const bool differs =
          first.site.file && (first.block != now.block || first.thread != now.thread);
      cell.read[differs ? 1 : 0] = now;
      continue;
    }
    for (const GlobalTouch &read : cell.read)
      if (conflicts(shadow, read, now)) refuse(view, i + b / view.size, access, site, read, false);
    cell.write = now;
  }
  if (access == kAtomic) shadow.updated[now.block] = now.time;
}

}  // namespace plait::cuda::emulation
