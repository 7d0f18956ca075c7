// SPDX-License-Identifier: MIT
#pragma once

#include <stdexcept>
#include <string>

#include "sim/run/search/assess.h"
#include "sim/run/simulate.h"

namespace convoy::inline runs {

/// A run's output as stores keep it and processes pass it on: JSON with results.json's fields
/// (result_fields.h). Exact. The run's id and point stay behind; who reads it has them.
struct StoredRun {
  std::string result;
  std::string network_model;  ///< in results.json part of the manifest
  std::string trace;          ///< "": none was asked for
};

/// A stored run whose fields are not those of this version of the program.
struct UnreadableRun : std::runtime_error {
  using std::runtime_error::runtime_error;
};

StoredRun stored_form(const RunOutput& output, bool with_trace);
/// @throws UnreadableRun
RunResult run_of_stored(const StoredRun& run);
std::vector<TraceProcess> trace_of_stored(const StoredRun& run);

// The same as one string of bytes, between processes of this program.
std::string encode(const StoredRun& run);
StoredRun decode_stored(std::string bytes);

std::string encode(const RunOutput& output);
RunOutput decode_output(std::string bytes);

std::string encode(const Assessment& assessment);
Assessment decode_assessment(const std::string& bytes);

}  // namespace convoy::runs
