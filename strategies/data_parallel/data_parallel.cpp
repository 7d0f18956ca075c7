// SPDX-License-Identifier: MIT
#include "strategies/data_parallel/data_parallel.h"

#include "strategies/data_parallel/all_reduce.h"
#include "strategies/data_parallel/parameter_server.h"

namespace convoy {

std::unique_ptr<Strategy> read_data_parallel(YamlMap& map) {
  const bool servers = map.choice("sync", {"all_reduce", "parameter_server"}) == 1;
  return servers ? read_parameter_server(map) : read_all_reduce(map);
}

}  // namespace convoy
