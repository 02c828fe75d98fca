// Copies and fills. Memory of the host that is not pinned is copied at the call, or waited for.
#include <cstring>
#include <new>

#include "emulation/driver/state.h"

namespace plait::cuda::driver {
namespace {

Result is_of_host(const void *address) {
  return address && !is_shown(address) ? kSuccess : kInvalidValue;
}
Result copy_later(const StreamPtr &stream, char *to, const char *from, size_t bytes) {
  return submit(stream, [stream, to, from, bytes] {
    work(*stream->context, [&] { memmove(to, from, bytes); });
  });
}
Result fill(Address address, size_t bytes, Stream handle, const std::function<void(char *)> &run) {
  StreamPtr stream;
  if (const Result r = entered(handle, &stream)) return r;
  if (!bytes) return kSuccess;
  char *to = host_address(stream->context->ordinal, address, bytes);
  if (!to) return kInvalidValue;
  return submit(stream, [stream, to, run] { work(*stream->context, [&] { run(to); }); });
}

}  // namespace

Result copy_to_device(Address to, const void *from, size_t bytes, Stream handle) {
  StreamPtr stream;
  if (const Result r = entered(handle, &stream)) return r;
  if (!bytes) return kSuccess;
  char *data = host_address(stream->context->ordinal, to, bytes);
  if (!data) return kInvalidValue;
  if (const Result r = is_of_host(from)) return r;
  count(kCopies);
  if (is_pinned(from, bytes))
    return copy_later(stream, data, static_cast<const char *>(from), bytes);
  if (const Result r = check_not_capturing(stream)) return r;
  const std::shared_ptr<char[]> staged(new (std::nothrow) char[bytes]);
  if (!staged) return kOutOfMemory;
  memcpy(staged.get(), from, bytes);
  return submit(stream, [stream, data, staged, bytes] {
    work(*stream->context, [&] { memcpy(data, staged.get(), bytes); });
  });
}

Result copy_to_host(void *to, Address from, size_t bytes, Stream handle) {
  StreamPtr stream;
  if (const Result r = entered(handle, &stream)) return r;
  if (!bytes) return kSuccess;
  const char *data = host_address(stream->context->ordinal, from, bytes);
  if (!data) return kInvalidValue;
  if (const Result r = is_of_host(to)) return r;
  count(kCopies);
  if (is_pinned(to, bytes)) return copy_later(stream, static_cast<char *>(to), data, bytes);
  if (const Result r = check_not_capturing(stream)) return r;
  if (const Result r = copy_later(stream, static_cast<char *>(to), data, bytes)) return r;
  count(kWaits);
  drain(stream);
  return Result(stream->context->fault.load());
}

Result copy_on_device(Address to, Address from, size_t bytes, Stream handle) {
  StreamPtr stream;
  if (const Result r = entered(handle, &stream)) return r;
  if (!bytes) return kSuccess;
  char *target = host_address(-1, to, bytes);
  const char *source = host_address(-1, from, bytes);
  if (!target || !source) return kInvalidValue;
  count(kCopies);
  return copy_later(stream, target, source, bytes);
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
  char *target = host_address(there->ordinal, to, bytes);
  const char *source = host_address(here->ordinal, from, bytes);
  if (!target || !source) return kInvalidValue;
  count(kCopies);
  return copy_later(stream, target, source, bytes);
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
