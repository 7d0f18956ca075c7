// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "sim/run/search/assess.h"
#include "sim/run/simulate.h"

namespace convoy {

/// A run's output as bytes between processes of this program: exact, and not for files. The sweep's
/// coordinates stay behind; who decodes has them.
std::string encode(const RunOutput& output);
RunOutput decode_output(const std::string& bytes);

std::string encode(const Assessment& assessment);
Assessment decode_assessment(const std::string& bytes);

}  // namespace convoy
