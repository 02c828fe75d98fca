// Accesses of memory: what is allowed, and what is said of one that is not.
#include <cstdarg>
#include <cstdio>

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

void check_global(const GlobalView &view, int64_t i, int count, Access access, Site site) {
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
  if (state.shadow) record_global(view, i, count, access, site);
}

// ---- shared memory

SharedRange take_shared(BlockState &state, int thread, uint32_t *used, int64_t n, int size,
                        int alignment, Site site) {
  // as on a device, vectors of any element are aligned
  const unsigned step = alignment < 16 ? 16 : unsigned(alignment);
  const uint32_t offset = (*used + step - 1) / step * step;
  const uint32_t all = state.launch->shared;
  if (n < 0 || n > (int64_t(all) - int64_t(offset)) / size)
    trap(state, thread, site, driver::kIllegalAddress,
         "shared memory: %lld elements of %d bytes after %u bytes do not fit in the %u bytes of "
         "the launch",
         static_cast<long long>(n), size, offset, all);
  *used = offset + uint32_t(n) * unsigned(size);
  return {offset, uint32_t(n)};
}

void refuse_unaligned(BlockState &state, int thread, int64_t i, int count, Site site) {
  trap(state, thread, site, driver::kMisalignedAddress,
       "a vector of %d elements in shared memory begins at element %lld, at no multiple of its size",
       count, static_cast<long long>(i));
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

char *touch_shared(BlockState &state, int thread, const SharedRange &range, int64_t i, int size,
                   Access access, Site site) {
  if (uint64_t(i) >= range.count)
    trap(state, thread, site, driver::kIllegalAddress,
         "it %s element %lld of shared memory, which has %u elements", verb(access),
         static_cast<long long>(i), range.count);
  Team &team = *state.team;
  const uint32_t offset = range.offset + uint32_t(i) * unsigned(size);
  Touch now;
  now.epoch = team.epoch;
  now.place = place_of(team, site);
  now.thread = uint16_t(thread);
  now.phase = team.warp[thread / kWarp].phase;
  now.atomic = access == kAtomic;
  for (int b = 0; b < size; b++) {
    Cell &cell = team.cells[offset + unsigned(b)];
    if (access != kWrite && cell.write.epoch < team.first_epoch)
      trap(state, thread, site, driver::kLaunchFailed,
           "it %s element %lld of shared memory, which nobody has written", verb(access),
           static_cast<long long>(i));
    if (conflicts(cell.write, now) && !(now.atomic && cell.write.atomic))
      refuse_race(state, cell.write, true, now, access, offset + unsigned(b), site);
    if (access == kRead) {
      record_read(cell, now);
      continue;
    }
    for (const Touch &read : cell.read)
      if (conflicts(read, now))
        refuse_race(state, read, false, now, access, offset + unsigned(b), site);
    cell.write = now;
  }
  return team.shared.data() + offset;
}

}  // namespace plait::cuda::emulation
