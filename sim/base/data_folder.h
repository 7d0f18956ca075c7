// SPDX-License-Identifier: MIT
#pragma once

#include <string>

namespace convoy::inline base {

/// Where data_path() looks first: the folder with models/zoo and topologies/catalog of an installed convoy, for
/// programs of one's own that lie elsewhere. find_package(convoy) defines it as CONVOY_DATA_FOLDER.
/// @pre called before anything is read: at the beginning of main
void use_data_folder(std::string folder);

}  // namespace convoy::base
