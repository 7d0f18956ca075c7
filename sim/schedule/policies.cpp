// SPDX-License-Identifier: MIT
#include "sim/schedule/policies.h"

namespace convoy::inline schedule {

const std::vector<std::string>& policy_names() {
  static const std::vector<std::string> names{
      "afs-l",       "afs-p-like", "optimus-like",     "tiresias-l",  "srtf",
      "themis-like", "edf",        "elasticflow-like", "pollux-like", "sia-like"};
  return names;
}

std::unique_ptr<Policy> make_policy(const std::string& name) {
  for (auto make : {&afs_l, &afs_p_like, &optimus_like, &tiresias_l, &srtf, &themis_like, &edf,
                    &elasticflow_like, &pollux_like, &sia_like})
    if (std::unique_ptr<Policy> policy = make(); policy->name() == name) return policy;
  return nullptr;
}

}  // namespace convoy::schedule
