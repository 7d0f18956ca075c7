// SPDX-License-Identifier: MIT
#pragma once

#include <pybind11/pybind11.h>

#include <memory>
#include <string>

#include "python/table.h"
#include "sim/results/origin.h"
#include "sim/results/result.h"

namespace convoy::bindings {

/// Results in the process, with what they were computed from. What Python asks of them is made when it is
/// asked.
class RunResults {
 public:
  RunResults(Results results, Origin origin) : results_(std::move(results)), origin_(std::move(origin)) {}

  const Results& results() const { return results_; }
  const Origin& origin() const { return origin_; }
  std::string json() const;   ///< results.json
  std::string page() const;   ///< report.html
  std::string words() const;  ///< the text for people
  const std::shared_ptr<const Table>& table();

 private:
  Results results_;
  Origin origin_;
  std::shared_ptr<const Table> table_;
};

/// Adds their class to the module.
void add_results(pybind11::module_& module);

}  // namespace convoy::bindings
