// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "models/tensor_bytes.h"
#include "sim/lowering/graph_index.h"
#include "strategies/filter_parallel/filter_plan.h"

namespace convoy::inline strategies {

/// What one convolution sends, and its operations.
struct FilterExchange {
  SharedConvolution convolution;
  double input_bytes, output_bytes;  ///< of all images
  double filter_bytes;               ///< of all filters
  OpId forward, weight_gradient;
  std::optional<OpId> data_gradient;
  std::vector<EndpointId> workers;                                    ///< with filters of this layer
  std::uint32_t inputs = 0, outputs = 0, gradients = 0, results = 0;  ///< messages
  std::uint32_t layout = no_meaning;                                  ///< filters of each device
  // Where workers pass inputs on to each other:
  bool shared = false;
  std::uint32_t passed_on = 0, partials = 0;  ///< messages between workers
  std::uint32_t slices = no_meaning;          ///< layout: the images that each of them gets from the master
  /// Of worker d: the first and the one behind the last.
  IndexRange images_of(EndpointId d, double images) const {
    const auto w = static_cast<std::int64_t>(workers.size()), all = static_cast<std::int64_t>(images);
    const auto i = std::lower_bound(workers.begin(), workers.end(), d) - workers.begin();
    return {all * i / w, all * (i + 1) / w};
  }
};

/// The convolutions that are shared out, what the master and its workers send each other of them (and what that
/// means, where it is asked for), and the operations of which there are shares.
class FilterExchanges {
 public:
  /// @param devices of a replica
  /// @param images of a micro-batch
  FilterExchanges(const FilterOptions& options, const StrategyInput& input, std::uint32_t devices,
                  double images);

  const std::vector<FilterExchange>& all() const { return exchanges_; }  ///< by layer
  PlacedWork& work() { return work_; }                                   ///< with the messages

  /// What an operation means, where that is asked for. @param layout the device's part of it; else all
  void mean(PlanOp& op, OpId id, std::uint32_t layout = no_meaning);
  /// Of all of a tensor.
  static constexpr std::uint32_t all_of_it = 0;

  /// Share of the images that worker d takes from the master, and whose gradients it sends there.
  double slice(const FilterExchange& e, EndpointId d) const;
  /// Of worker d's outputs.
  static double slice_bytes(const FilterExchange& e, EndpointId d) {
    return e.convolution.fraction(d) * e.output_bytes;
  }
  /// Of a data gradient that a worker makes of its filters.
  static double partial_bytes(const FilterExchange& e) { return e.data_gradient ? e.input_bytes : 0; }
  /// Of the filters whose gradients workers make.
  static double returned_bytes(const FilterExchange& e) {
    double bytes = 0;
    for (const EndpointId d : e.workers) bytes += e.convolution.fraction(d) * e.filter_bytes;
    return bytes;
  }
  /// The first operation of a convolution's backward pass.
  static OpId backward_of(const FilterExchange& e) { return e.data_gradient.value_or(e.weight_gradient); }

  /// The convolution's kernel with the filters of device d. Workers get images of the master, which alone
  /// runs what reads them first.
  PlanOp kernel(const FilterExchange& e, OpId id, EndpointId d);
  /// Adding up data gradients of those who had filters: two read, one written each time.
  /// @param share of the images  @param layout of these
  PlanOp sum_of_partials(const FilterExchange& e, double additions, double share, std::uint32_t layout);
  /// What workers made of their filters' gradients, added to those of the micro-batches before.
  PlanOp added_filters(const FilterExchange& e);

 private:
  void add_exchange(SharedConvolution shared);
  void begin_meaning();
  std::optional<OpId> maker_of(LayerIndex layer) const;
  std::uint32_t layout_of(const SharedConvolution& shared);
  std::uint32_t slices_of(const FilterExchange& e);
  void mean_messages(const FilterExchange& e);
  double down_forward(const FilterExchange& e, EndpointId d) const;
  double up_backward(const FilterExchange& e, EndpointId d) const;
  template <class Bytes>
  std::uint32_t add_message(const FilterExchange& exchange, bool down, std::string_view what, Bytes bytes);
  std::uint32_t add_message_among_workers(const FilterExchange& e, std::string_view what, bool of_sender);
  void add_messages(FilterExchange& e);

  const FilterOptions& options_;
  const TrainingGraph& graph_;
  const TensorBytes tensor_bytes_;
  const GraphIndex index_;
  std::uint32_t devices_;
  double images_;
  PlacedWork work_;
  std::vector<FilterExchange> exchanges_;
};

}  // namespace convoy::strategies
