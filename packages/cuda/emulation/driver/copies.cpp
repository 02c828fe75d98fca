// Copies and fills. Memory of the host that is not pinned is copied at the call, or waited for.
#include <cstring>
#include <new>

#include "emulation/driver/state.h"

namespace plait::cuda::driver {
namespace {

using emulation::TracedKind;

Result is_of_host(const void *address) {
  return address && !is_shown(address) ? kSuccess : kInvalidValue;
}

// One end of a copy. Memory is looked up again when the copy runs: a graph may outlive it.
struct End {
  int device;  // whose peers may be used; -1: any memory
  Address address;
};
char *host_of(const End &end, size_t bytes) { return host_address(end.device, end.address, bytes); }
End pinned(const void *address) { return {-1, reinterpret_cast<uintptr_t>(address)}; }

void run_on_memory(const StreamPtr &stream, const TracedCall &call, std::initializer_list<End> ends,
                   const std::function<void(char *, char *)> &run) {
  work(stream, call, [&] {
    char *data[2] = {};
    int n = 0;
    for (const End &end : ends) {
      if (!(data[n++] = host_of(end, call.bytes)))
        return set_fault(*stream->context, kIllegalAddress,
                         "a copy or fill: its memory has been freed");
    }
    run(data[0], data[1]);
  });
}

Result copy_later(const StreamPtr &stream, End to, End from, size_t bytes,
                  TracedKind kind = TracedKind::kCopy) {
  if (!host_of(to, bytes) || !host_of(from, bytes)) return kInvalidValue;
  const TracedCall call = trace_call(kind, nullptr, bytes);
  return submit(stream, [stream, to, from, call] {
    run_on_memory(stream, call, {to, from},
                  [&](char *target, char *source) { memmove(target, source, call.bytes); });
  });
}
Result fill(Address address, size_t bytes, Stream handle, const std::function<void(char *)> &run) {
  StreamPtr stream;
  if (const Result r = entered(handle, &stream)) return r;
  if (!bytes) return kSuccess;
  const End to = {stream->context->ordinal, address};
  if (!host_of(to, bytes)) return kInvalidValue;
  const TracedCall call = trace_call(TracedKind::kFill, nullptr, bytes);
  return submit(stream, [stream, to, call, run] {
    run_on_memory(stream, call, {to}, [&](char *data, char *) { run(data); });
  });
}

}  // namespace

Result copy_to_device(Address to, const void *from, size_t bytes, Stream handle) {
  StreamPtr stream;
  if (const Result r = entered(handle, &stream)) return r;
  if (!bytes) return kSuccess;
  const End target = {-1, to};
  if (!host_of(target, bytes)) return kInvalidValue;
  if (const Result r = is_of_host(from)) return r;
  count(kCopies);
  if (is_pinned(from, bytes)) return copy_later(stream, target, pinned(from), bytes);
  if (const Result r = check_capture(stream)) return r;
  const std::shared_ptr<char[]> staged(new (std::nothrow) char[bytes]);
  if (!staged) return kOutOfMemory;
  memcpy(staged.get(), from, bytes);
  const TracedCall call = trace_call(TracedKind::kCopy, nullptr, bytes);
  return submit(stream, [stream, target, staged, call] {
    run_on_memory(stream, call, {target},
                  [&](char *data, char *) { memcpy(data, staged.get(), call.bytes); });
  });
}

Result copy_to_host(void *to, Address from, size_t bytes, Stream handle) {
  StreamPtr stream;
  if (const Result r = entered(handle, &stream)) return r;
  if (!bytes) return kSuccess;
  const End source = {-1, from};
  if (!host_of(source, bytes)) return kInvalidValue;
  if (const Result r = is_of_host(to)) return r;
  count(kCopies);
  if (is_pinned(to, bytes)) return copy_later(stream, pinned(to), source, bytes);
  if (const Result r = check_capture(stream)) return r;
  const TracedCall call = trace_call(TracedKind::kCopy, nullptr, bytes);
  const auto copy = [stream, to, source, call] {
    run_on_memory(stream, call, {source},
                  [&](char *data, char *) { memcpy(to, data, call.bytes); });
  };
  if (const Result r = submit(stream, copy)) return r;
  count(kWaits);
  drain(stream);
  return Result(stream->context->fault.load());
}

Result copy_on_device(Address to, Address from, size_t bytes, Stream handle) {
  StreamPtr stream;
  if (const Result r = entered(handle, &stream)) return r;
  if (!bytes) return kSuccess;
  count(kCopies);
  return copy_later(stream, {-1, to}, {-1, from}, bytes);
}

Result copy_to_peer(Address to, Context there, Address from, Context here, size_t bytes,
                    Stream handle) {
  StreamPtr stream;
  if (const Result r = entered(handle, &stream)) return r;
  for (const Context context : {there, here}) {
    bool is_known = false;
    for (int i = 0; i < devices(); i++) is_known |= context == &context_of(i);
    if (!is_known) return kInvalidContext;
  }
  if (!bytes) return kSuccess;
  count(kCopies);
  return copy_later(stream, {there->ordinal, to}, {here->ordinal, from}, bytes,
                    TracedKind::kPeerCopy);
}

Result fill_bytes(Address to, unsigned char value, size_t bytes, Stream stream) {
  return fill(to, bytes, stream, [=](char *data) { memset(data, value, bytes); });
}
Result fill_words(Address to, unsigned value, size_t words, Stream stream) {
  if (to % 4 || words > SIZE_MAX / 4) return kInvalidValue;
  return fill(to, words * 4, stream, [=](char *data) {
    for (size_t i = 0; i < words; i++) memcpy(data + 4 * i, &value, 4);
  });
}

}  // namespace plait::cuda::driver
