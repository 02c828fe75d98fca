// The functions of MPI that are used, for handles of one form.
#pragma once
#include <dlfcn.h>

#include <atomic>
#include <cstring>
#include <string>

#include "facts.h"

namespace plait::mpi {

template <class Handle>
Handle handle(uint64_t bits) {
  Handle h;
  static_assert(sizeof h <= sizeof bits);
  std::memcpy(&h, &bits, sizeof h);  // little-endian: the low bytes
  return h;
}

// The function of MPI that was called last: where the thread is that does not return.
inline std::atomic<const char *> last_call{"MPI"};

template <class Signature>
struct Function;
template <class R, class... A>
struct Function<R(A...)> {
  R (*address)(A...) = nullptr;
  const char *name = nullptr;
  explicit operator bool() const { return address; }
  R operator()(A... a) const {
    last_call.store(name, std::memory_order_relaxed);
    return address(a...);
  }
};

template <class Handle>
struct Functions {
  Function<int(const void *, int, Handle, int, int, Handle, Handle *)> isend;
  Function<int(void *, int, Handle, int, int, Handle, Handle *)> irecv;
  Function<int(Handle *, int *, void *)> test;
  Function<int(int, Handle *, int *, int *, void *)> testsome;
  Function<int(Handle *)> cancel;
  Function<int(const void *, int *)> test_cancelled;
  Function<int(const void *, Handle, int *)> get_count;
  Function<int(Handle, Handle *, Handle *)> comm_idup;
  Function<int(Handle, Handle)> comm_set_errhandler;
  Function<int(Handle, Handle *)> comm_group;
  Function<int(Handle, int *)> group_size;
  Function<int(Handle, int, const int *, Handle, int *)> group_translate_ranks;
  Function<int(Handle *)> group_free;
  Function<int(int, int *)> error_class;
  // of fault tolerance; nullptr where the library has none
  Function<int(Handle)> failure_ack;
  Function<int(Handle, Handle *)> failure_get_acked;

  // false: a function is missing, whose name is given
  bool load(void *library, std::string &missing) {
    const auto need = [&](auto &f, const char *name) {
      f.address = reinterpret_cast<decltype(f.address)>(dlsym(library, name));
      f.name = name;
      if (!f && missing.empty()) missing = name;
    };
    need(isend, "MPI_Isend");
    need(irecv, "MPI_Irecv");
    need(test, "MPI_Test");
    need(testsome, "MPI_Testsome");
    need(cancel, "MPI_Cancel");
    need(test_cancelled, "MPI_Test_cancelled");
    need(get_count, "MPI_Get_count");
    need(comm_idup, "MPI_Comm_idup");
    need(comm_set_errhandler, "MPI_Comm_set_errhandler");
    need(comm_group, "MPI_Comm_group");
    need(group_size, "MPI_Group_size");
    need(group_translate_ranks, "MPI_Group_translate_ranks");
    need(group_free, "MPI_Group_free");
    need(error_class, "MPI_Error_class");
    if (!missing.empty()) return false;
    std::string none;
    std::swap(none, missing);
    need(failure_ack, "MPIX_Comm_failure_ack");
    need(failure_get_acked, "MPIX_Comm_failure_get_acked");
    missing.clear();
    return true;
  }
};

}  // namespace plait::mpi
