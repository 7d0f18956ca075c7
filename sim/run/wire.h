// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "sim/run/search/assess.h"
#include "sim/run/simulate.h"

namespace convoy {

/// A run's output as JSON between processes of this program, with results.json's fields (result_fields.h):
/// exact, but for its point, whose numbers come back as JSON has them.
/// @throws std::runtime_error: it cannot be read
std::string encode(const RunOutput& output);
RunOutput decode_output(const std::string& bytes);

std::string encode(const Assessment& assessment);
Assessment decode_assessment(const std::string& bytes);

}  // namespace convoy
