// Memory of devices that this process lends to others, and that it has borrowed.
#pragma once
#include <sys/types.h>

#include "table.hpp"

namespace plait::multiprocessing {

struct Lent {  // under one ticket block
  plait_storage *ticket;  // counted
  // of the device; counted by the lender alone, and nullptr while a borrower opens or closes it
  plait_storage *storage;
  File *file;  // whose descriptor goes along with messages, a user of it; or nullptr
  DLDevice device;
  uint64_t nbytes;
  // of a borrower
  const plait_device *table;
  void *data, *opened;
  pid_t process;  // that opened it
};

// takes the descriptor over; counted as one user. nullptr with a failure
File *open_file(int fd, Failure &);
// gives up what this process lends and no other process has any more
void end_loans();
// waits for the work on memory that was borrowed, before the process gives its counts back
void finish_borrowing();

}  // namespace plait::multiprocessing
