// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "sim/cli/command_texts.h"

namespace convoy::inline cli {

struct ManualPage {
  std::string file;  ///< "convoy-run.1"
  std::string text;  ///< for man(1), in the macros of man(7)
};

/// convoy(1), a page a command, and convoy(5): every key of the files that are read.
std::vector<ManualPage> manual_pages(const std::vector<CommandText>& commands);

}  // namespace convoy::cli
