// The functions of MPI that are used, for handles of one form.
#pragma once
#include <dlfcn.h>

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

template <class Handle>
struct Functions {
  int (*isend)(const void *, int, Handle, int, int, Handle, Handle *) = nullptr;
  int (*irecv)(void *, int, Handle, int, int, Handle, Handle *) = nullptr;
  int (*test)(Handle *, int *, void *) = nullptr;
  int (*testsome)(int, Handle *, int *, int *, void *) = nullptr;
  int (*cancel)(Handle *) = nullptr;
  int (*test_cancelled)(const void *, int *) = nullptr;
  int (*get_count)(const void *, Handle, int *) = nullptr;
  int (*comm_idup)(Handle, Handle *, Handle *) = nullptr;
  int (*comm_set_errhandler)(Handle, Handle) = nullptr;
  int (*comm_group)(Handle, Handle *) = nullptr;
  int (*group_size)(Handle, int *) = nullptr;
  int (*group_translate_ranks)(Handle, int, const int *, Handle, int *) = nullptr;
  int (*group_free)(Handle *) = nullptr;
  int (*error_class)(int, int *) = nullptr;
  // of fault tolerance; nullptr where the library has none
  int (*failure_ack)(Handle) = nullptr;
  int (*failure_get_acked)(Handle, Handle *) = nullptr;

  // false: a function is missing, whose name is given
  bool load(void *library, std::string &missing) {
    const auto need = [&](auto &f, const char *name) {
      f = reinterpret_cast<std::remove_reference_t<decltype(f)>>(dlsym(library, name));
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
