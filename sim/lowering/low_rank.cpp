// SPDX-License-Identifier: MIT
#include "sim/lowering/low_rank.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "models/low_rank_shape.h"
#include "sim/lowering/plan_ops.h"

namespace convoy::inline lowering {

LowRankBucket::LowRankBucket(const TrainingGraph& graph, const Bucket& bucket,
                             const std::vector<double>& elements, std::int64_t rank)
    : element_bytes_(element_bytes(graph.options.precision)), bytes_(bucket.bytes) {
  for (const std::size_t p : bucket.parameters) {
    const Parameter& parameter = graph.parameters[p];
    const std::optional<LowRankShape> shape = low_rank_shape(graph.model, parameter, elements[p], rank);
    if (shape)
      matrices_.push_back({parameter.name, shape->rows, shape->columns, shape->rank});
    else
      whole_ += elements[p];
  }
}

double LowRankBucket::first_bytes() const {
  double sum = whole_;
  for (const Matrix& matrix : matrices_) sum += matrix.rows * matrix.rank;
  return sum * element_bytes_;
}

double LowRankBucket::second_bytes() const {
  double sum = 0;
  for (const Matrix& matrix : matrices_) sum += matrix.columns * matrix.rank;
  return sum * element_bytes_;
}

double LowRankBucket::kept_bytes() const { return second_bytes(); }

/// [rows, in] by [in, out], of which two dimensions are the matrix's and one is the rank: what is read and
/// written once is the same for all three products.
PlanOp LowRankBucket::product(const Matrix& matrix, const std::string& name, double in, double out) const {
  const auto [of, rows, columns, rank] = matrix;
  PlanOp op = elementwise_op(name, 2 * rows * columns * rank,
                             element_bytes_ * (rows * columns + rank * (rows + columns)));
  op.work.kind = KernelKind::matmul;
  op.work.in_channels = std::llround(in);
  op.work.out_channels = std::llround(out);
  op.work.phase = Phase::forward;
  return op;
}

/// Of each column: a norm (n read), an addition of one number, a division (2 n); of each but the last, with
/// the k columns after it: a product (n + 2 n k), sums (n k), a product (n + n k), a difference (3 n k).
PlanOp LowRankBucket::orthogonalised(const Matrix& matrix, const std::string& name) const {
  const double n = matrix.rows, r = matrix.rank, pairs = r * (r - 1) / 2;
  PlanOp op =
      elementwise_op(name, n * (3 * r + 4 * pairs), element_bytes_ * n * (3 * r + 2 * (r - 1) + 7 * pairs));
  op.work.launches = static_cast<float>(7 * r - 4);
  return op;
}

std::size_t LowRankBucket::add_first(ComputeTasks& tasks, const std::string& message) const {
  tasks.add_unnamed(elementwise_op(message + " compressed", bytes_ / element_bytes_, 3 * bytes_));
  const std::size_t buffer = tasks.hold({MemoryClass::workspace, first_bytes()});
  if (whole_ > 0) tasks.add_unnamed(elementwise_op(message + " filled", whole_, 2 * whole_ * element_bytes_));
  for (const Matrix& matrix : matrices_)
    tasks.add_unnamed(product(matrix, fmt::format("{}: first factor of {}", message, matrix.name),
                              matrix.columns, matrix.rank));
  tasks.use(buffer);
  return buffer;
}

TaskId LowRankBucket::add_second(ComputeTasks& tasks, std::size_t buffer, const std::string& message,
                                 TaskId arrived) const {
  tasks.wait_for(arrived);
  for (const Matrix& matrix : matrices_) {
    tasks.add(orthogonalised(matrix, fmt::format("{}: {} made orthogonal", message, matrix.name)));
    tasks.use(buffer);
    tasks.add(product(matrix, fmt::format("{}: second factor of {}", message, matrix.name), matrix.rows,
                      matrix.rank));
    tasks.use(buffer);
  }
  return tasks.close(message + ", second factors");
}

void LowRankBucket::add_decompression(ComputeTasks& tasks, std::size_t buffer,
                                      const std::string& message) const {
  for (const Matrix& matrix : matrices_)
    tasks.add(
        product(matrix, fmt::format("{}: sum of {}", message, matrix.name), matrix.rank, matrix.columns));
  if (whole_ > 0) {
    tasks.add(elementwise_op(message + " emptied", whole_, 2 * whole_ * element_bytes_));
    tasks.use(buffer);
  }
  tasks.add(elementwise_op(message + " decompressed", bytes_ / element_bytes_, 3 * bytes_));
  tasks.use(buffer);
}

}  // namespace convoy::lowering
