// The secret that the processes of a job share.
#pragma once
#include <string>

namespace plait::ucx {

// That of PLAIT_JOB_SECRET, or of the file PLAIT_JOB_SECRET_FILE, which its owner alone may read;
// empty if there is neither. False with a text if the file cannot be used.
bool job_secret(std::string &secret, std::string &why);

}  // namespace plait::ucx
