// SPDX-License-Identifier: MIT
#include "sim/calibration/typical_issue.h"

namespace convoy::inline calibration {

TypicalIssue typical_issue(Framework framework, ExecutionMode execution) {
  constexpr double of_forward =
      1.5;  // a forward operation, relative to a backward one: it makes the backward one's node
  const auto alike = [](double issue_s) { return TypicalIssue{of_forward * issue_s, issue_s, issue_s}; };
  if (execution == ExecutionMode::compiled) return alike(5e-6);
  switch (framework) {
    case Framework::pytorch:
    case Framework::pytorch1:
    case Framework::torch7:
      return alike(execution == ExecutionMode::eager ? 25e-6 : 5e-6);
    case Framework::caffe:
    case Framework::caffe2:
      return alike(6e-6);
    case Framework::mxnet:
    case Framework::mxnet1:
      return execution == ExecutionMode::eager ? alike(45e-6) : TypicalIssue{6e-6, 6e-6, 11e-6};
    default:
      return alike(execution == ExecutionMode::eager ? 40e-6 : 10e-6);
  }
}

double typical_issue_step_s(Framework framework) { return framework == Framework::tensorflow ? 1.5e-3 : 0; }

bool normalization_is_fused(Framework framework, ExecutionMode execution, Layout layout) {
  return framework == Framework::mxnet && execution == ExecutionMode::graph && layout == Layout::nhwc;
}

double typical_one_thread(Framework framework) {
  switch (framework) {
    case Framework::caffe:
    case Framework::caffe2:
    case Framework::torch7:
      return 2;  // loops over single values
    default:
      return 0;
  }
}

}  // namespace convoy::calibration
