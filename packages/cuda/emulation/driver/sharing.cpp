#include "emulation/driver/state.h"

namespace plait::cuda::driver {

Result share_memory(IpcHandle *, Address) { return kNotSupported; }
Result open_memory(Address *, IpcHandle, unsigned) { return kNotSupported; }
Result close_memory(Address) { return kNotSupported; }
Result share_event(IpcHandle *, Event) { return kNotSupported; }
Result open_event(Event *, IpcHandle) { return kNotSupported; }

}  // namespace plait::cuda::driver
