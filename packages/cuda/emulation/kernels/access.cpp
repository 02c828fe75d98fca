// Accesses of memory: what is allowed, and what is said of one that is not.
#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "emulation/kernels/shadow.h"
#include "emulation/kernels/team.h"

namespace plait::cuda::emulation {

namespace {
const char *verb(Access access) {
  return access == kRead ? "reads" : access == kWrite ? "writes" : "updates";
}
}  // namespace

void trap(const BlockState &state, int thread, Site site, driver::Result code, const char *format,
          ...) {
  Trapped trapped;
  trapped.trap.code = code;
  char *text = trapped.trap.text;
  const int size = int(sizeof trapped.trap.text);
  int n = snprintf(text, size_t(size),
                   "%s, %s:%d, block (%u, %u, %u), thread %d: ", state.launch->entry->name,
                   stem(site.file), site.line, state.x, state.y, state.z, thread);
  n = n < size ? n : size - 1;
  va_list rest;
  va_start(rest, format);
  vsnprintf(text + n, size_t(size - n), format, rest);
  va_end(rest);
  throw trapped;
}

// ---- global memory

namespace {

bool find(BlockState &state, uintptr_t address, Range *out) {
  for (const Range &range : state.recent) {
    if (address < range.begin || address >= range.end) continue;
    *out = range;
    return true;
  }
  const Launch &launch = *state.launch;
  if (!launch.driver->find(launch.device, address, out)) return false;
  state.recent[state.next_recent++ % 4] = *out;
  return true;
}

}  // namespace

GlobalRange global_range(const GlobalView &view) {
  Range range;
  if (!find(*view.state, view.address, &range)) return {nullptr, 0, 0};
  GlobalRange result = {reinterpret_cast<char *>(view.address + uintptr_t(range.distance)), 0, 0};
  if (view.address % unsigned(view.alignment) || view.state->shadow) return result;
  const int64_t after = int64_t(range.end - view.address) / view.size;
  if (view.n < 0) result.low = -(int64_t(view.address - range.begin) / view.size);
  result.count = uint64_t((view.n < 0 || view.n > after ? after : view.n) - result.low);
  return result;
}

void check_global(const GlobalView &view, int64_t i, int count, Access access, Site site,
                  const void *same) {
  BlockState &state = *view.state;
  const unsigned long long address = view.address + uint64_t(i) * uint64_t(view.size);
  const auto refuse = [&](driver::Result code, const char *why) {
    trap(state, view.thread, site, code,
         "it %s element %lld of global memory at 0x%llx (%d bytes at 0x%llx): %s", verb(access),
         static_cast<long long>(i), static_cast<unsigned long long>(view.address),
         view.size * count, address, why);
  };
  Range range;
  if (!find(state, view.address, &range))
    refuse(driver::kIllegalAddress, "there is no memory of the device");
  char why[160];
  if (view.n >= 0 && (i < 0 || i > view.n - count)) {
    snprintf(why, sizeof why, "there are %lld elements", static_cast<long long>(view.n));
    refuse(driver::kIllegalAddress, why);
  }
  const int64_t low = -(int64_t(view.address - range.begin) / view.size);
  const int64_t high = int64_t(range.end - view.address) / view.size;
  if (i < low || i > high - count) {
    snprintf(why, sizeof why,
             "the allocation has %zu bytes from 0x%llx, which are elements %lld "
             "to %lld",
             size_t(range.end - range.begin), static_cast<unsigned long long>(range.begin),
             static_cast<long long>(low), static_cast<long long>(high - 1));
    refuse(driver::kIllegalAddress, why);
  }
  const int alignment = count > 1           ? view.size * count
                        : access == kAtomic ? view.size
                                            : view.alignment;
  if (address % unsigned(alignment)) {
    snprintf(why, sizeof why, "the address is no multiple of %d", alignment);
    refuse(driver::kMisalignedAddress, why);
  }
  if (!state.shadow) return;
  // equal values in any order leave the same memory
  const bool repeats =
      same && !memcmp(reinterpret_cast<void *>(address + uintptr_t(range.distance)), same,
                      size_t(view.size));
  record_global(view, i, count, access, site, {same != nullptr, repeats});
}

// ---- shared memory

SharedRange take_shared(BlockState &state, int thread, uint32_t *used, int64_t n, int size,
                        Site site) {
  const uint32_t offset = (*used + 15) / 16 * 16;  // vectors of any element are aligned
  const uint32_t all = state.launch->shared;
  if (n < 0 || n > (int64_t(all) - int64_t(offset)) / size)
    trap(state, thread, site, driver::kIllegalAddress,
         "shared memory: %lld elements of %d bytes after %u bytes do not fit in the %u bytes of "
         "the launch",
         static_cast<long long>(n), size, offset, all);
  *used = offset + uint32_t(n) * unsigned(size);
  return {offset, uint32_t(n)};
}

namespace {

uint32_t place_of(Team &team, Site site) {
  unsigned f = 0;
  while (f < team.files_count && team.files[f] != site.file) f++;
  if (f == team.files_count && f < 255) team.files[team.files_count++] = site.file;
  return f << 24 | (uint32_t(site.line) & 0xffffff);
}

// Whether two accesses of different threads come in no order.
bool conflicts(const Touch &before, const Touch &now) {
  if (before.epoch != now.epoch || before.thread == now.thread) return false;
  return before.thread / kWarp != now.thread / kWarp || before.phase == now.phase;
}

[[noreturn]] void refuse_race(BlockState &state, const Touch &before, bool wrote, const Touch &now,
                              Access access, uint32_t offset, Site site) {
  Team &team = *state.team;
  const unsigned f = before.place >> 24;
  trap(state, now.thread, site, driver::kLaunchFailed,
       "it %s byte %u of shared memory, which thread %u %s at %s:%u; no barrier is between them",
       verb(access), offset, unsigned(before.thread),
       before.atomic ? "updated"
       : wrote       ? "wrote"
                     : "read",
       f < team.files_count ? stem(team.files[f]) : "?", before.place & 0xffffff);
}

void record_read(Cell &cell, const Touch &now) {
  // Two readers are enough: whoever writes differs from one of them.
  cell.read[conflicts(cell.read[0], now) ? 1 : 0] = now;
}

}  // namespace

// Records an access of the bytes that a cell stands for.
static void touch(BlockState &state, Cell &cell, const Touch &now, Access access, uint32_t offset,
                  Site site) {
  if (access != kWrite && cell.write.epoch < state.team->first_epoch)
    trap(state, now.thread, site, driver::kLaunchFailed,
         "it %s byte %u of shared memory, which nobody has written", verb(access), offset);
  if (conflicts(cell.write, now) && !(now.atomic && cell.write.atomic))
    refuse_race(state, cell.write, true, now, access, offset, site);
  if (access == kRead) return record_read(cell, now);
  for (const Touch &read : cell.read)
    if (conflicts(read, now)) refuse_race(state, read, false, now, access, offset, site);
  cell.write = now;
}

char *touch_shared(BlockState &state, int thread, const SharedRange &range, int64_t i, int size,
                   int count, Access access, Site site) {
  if (i < 0 || i > int64_t(range.count) - count)
    trap(state, thread, site, driver::kIllegalAddress,
         "it %s element %lld of shared memory, which has %u elements", verb(access),
         static_cast<long long>(i < 0 ? i : i + count - 1), range.count);
  Team &team = *state.team;
  const uint32_t begin = range.offset + uint32_t(i) * unsigned(size);
  const uint32_t end = begin + unsigned(size * count);
  if (count > 1 && begin % unsigned(size * count))
    trap(state, thread, site, driver::kMisalignedAddress,
         "it %s %d elements from element %lld of shared memory: the address is no multiple of %d",
         verb(access), count, static_cast<long long>(i), size * count);
  Touch now;
  now.epoch = team.epoch;
  now.place = place_of(team, site);
  now.thread = uint16_t(thread);
  now.phase = team.warp[thread / kWarp].phase;
  now.atomic = access == kAtomic;
  for (uint32_t at = begin; at < end;) {
    const uint32_t word = at / 4;
    const bool whole = at % 4 == 0 && end - at >= 4;
    if (whole && team.split[word] != team.first_epoch) {
      touch(state, team.words[word], now, access, at, site);
      at += 4;
      continue;
    }
    if (team.split[word] != team.first_epoch) {
      team.split[word] = team.first_epoch;
      for (uint32_t b = 0; b < 4; b++) team.bytes[4 * word + b] = team.words[word];
    }
    for (; at < end && at / 4 == word; at++) touch(state, team.bytes[at], now, access, at, site);
  }
  return team.shared_data + begin;
}

}  // namespace plait::cuda::emulation
