// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "models/training_graph.h"
#include "sim/lowering/buckets.h"
#include "sim/lowering/compute_tasks.h"
#include "sim/plan/plan.h"

namespace convoy::inline lowering {

/// A bucket whose gradient matrices go as two factors of few columns each: PowerSGD (Vogels, Karimireddy &
/// Jaggi, NeurIPS 2019, algorithms 1 and 2), with error feedback and a warm start. A matrix M of n rows and m
/// columns (matrix_of) has the rank r' = min(r, n, m). With the residual added,
///   P = M Q, summed over the replicas, its columns made orthogonal by Gram and Schmidt;
///   Q = M^T P, summed over the replicas and kept for the next step;
///   the sum of gradients is P Q^T, and each replica's residual M less its Nth part.
/// So there are two all-reduces, of n r' and of m r' elements. Vectors, and matrices of which the factors are
/// no smaller ((n + m) r' >= n m), go whole, with the first one.
///
/// Costs, with e bytes an element and N elements in the bucket: one kernel adds the residual (3 N e) and one
/// takes out what was sent (3 N e); each product is a matrix product that reads its factors and writes its
/// result once; whole tensors are copied into the message and back (2 e each way). To make r' columns of n
/// orthogonal takes the 7 r' - 4 kernels of PyTorch's powerSGD_hook.py (_orthogonalize): norm, addition and
/// division of each column, and product, sum, product and difference of it and those after it, but for the
/// last.
class LowRankBucket {
 public:
  /// @param elements of each parameter that are on a device; a part of a matrix has fewer rows
  LowRankBucket(const TrainingGraph& graph, const Bucket& bucket, const std::vector<double>& elements,
                std::int64_t rank);

  double first_bytes() const;   ///< of the message of first factors and whole tensors
  double second_bytes() const;  ///< of that of second factors; 0: there is none
  double kept_bytes() const;    ///< of the second factors, which stay from step to step
  double residual_bytes() const { return bytes_; }

  /// Adds the residual and makes the first factors, in the task under way. @return the message's buffer
  std::size_t add_first(ComputeTasks& tasks, const std::string& message) const;
  /// Appends a task that makes the second factors of the sum of the first ones, when `arrived` is done.
  TaskId add_second(ComputeTasks& tasks, std::size_t buffer, const std::string& message,
                    TaskId arrived) const;
  /// Adds the operations that make gradients of both sums, in the task under way; the buffer is free then.
  void add_decompression(ComputeTasks& tasks, std::size_t buffer, const std::string& message) const;

 private:
  struct Matrix {
    std::string name;
    double rows, columns, rank;
  };
  PlanOp product(const Matrix& matrix, const std::string& name, double in, double out) const;
  PlanOp orthogonalised(const Matrix& matrix, const std::string& name) const;

  std::vector<Matrix> matrices_;
  double element_bytes_, bytes_, whole_ = 0;  ///< whole_: elements that go as they are
};

}  // namespace convoy::lowering
