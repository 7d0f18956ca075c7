// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "sim/run/experiment.h"

namespace convoy::inline studies {

/// configs/NAME.yaml with `settings`. @throws InputError
Experiment load_config(const std::string& name, const std::vector<std::string>& settings);

/// The results of `work` for 0 … count - 1, in order, computed by forked processes. @throws
/// std::runtime_error
std::vector<std::string> answers_of_workers(std::size_t count, std::size_t jobs,
                                            const std::function<std::string(std::size_t)>& work);

}  // namespace convoy::studies
