// SPDX-License-Identifier: MIT
// What the functions of the Python module share.
#pragma once

#include <pybind11/pybind11.h>

#include <cstddef>
#include <exception>
#include <functional>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "sim/base/input_error.h"
#include "sim/run/experiment.h"
#include "sim/run/workers.h"

namespace convoy::bindings {

using Settings = std::vector<std::string>;
using Told = std::function<void(std::size_t done, std::size_t all)>;

/// An experiment of a file, or of a text where `text` is not empty.
inline Experiment experiment_of(const std::string& file, const std::string& text, const Settings& settings) {
  return text.empty() ? Experiment::load(file, settings) : Experiment::parse(text, file, settings);
}

/// What Python raises while a computation is under way without the interpreter's lock: KeyboardInterrupt
/// after Ctrl-C, or an exception of a progress function. It is kept until the computation has stopped and
/// written what it has.
class Raised {
 public:
  /// Looks for signals; true where the computation has to stop.
  bool stops() {
    if (!exception_)
      guard([] {
        if (PyErr_CheckSignals() != 0) throw pybind11::error_already_set();
      });
    return exception_ != nullptr;
  }
  void tell(const Told& told, std::size_t done, std::size_t all) {
    if (told && !exception_) guard([&] { told(done, all); });
  }
  void rethrow() const {
    if (exception_) std::rethrow_exception(exception_);
  }

 private:
  template <class Body>
  void guard(Body body) {
    try {
      const pybind11::gil_scoped_acquire lock;
      body();
    } catch (const pybind11::error_already_set&) {
      exception_ = std::current_exception();
    }
  }
  std::exception_ptr exception_;
};

template <class Write>
std::string text_of(Write write) {
  std::ostringstream out;
  write(out);
  return std::move(out).str();
}

inline std::size_t jobs_or_all(const std::optional<std::size_t>& jobs) { return jobs.value_or(all_cores()); }

/// Adds the class of time lines, and the function that simulates one, to the module.
void add_timelines(pybind11::module_& module);

}  // namespace convoy::bindings
