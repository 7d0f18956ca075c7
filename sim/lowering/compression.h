// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>

#include "models/training_graph.h"
#include "sim/base/keys.h"
#include "sim/lowering/compute_tasks.h"
#include "sim/plan/plan.h"

namespace convoy::inline lowering {

/// How gradients are made smaller before they are sent.
struct Compression {
  enum class Kind : std::uint8_t { none, fp16, top_k, quantised, sign, powersgd };
  enum class Combine : std::uint8_t { mean, majority };
  Kind kind = Kind::none;
  double ratio = 1;                 ///< of top_k: share of a message's gradients that is sent
  std::int64_t bits = 8;            ///< of quantised: of a gradient as it is sent
  Combine combine = Combine::mean;  ///< of sign: what all devices' signs become
  std::int64_t rank = 1;            ///< of powersgd: columns of each factor
  SourcePos pos;                    ///< for errors about what the precision does not allow
  bool operator==(const Compression&) const = default;
};

/// Every device needs what every other one sends, which cannot be summed on the way: it is gathered.
bool is_gathered(const Compression& compression);

/// `compression: none | fp16 | {kind: top_k, ratio: 0.01} | {kind: quantised, bits: 8} | {kind: sign} |
/// {kind: powersgd, rank: 4}`; none where the key is absent.
Key<Compression> compression_key();

/// "none", "fp16", "top_k", "quantised", "sign", "powersgd"
const std::string& kind_of(const Compression& compression);

/// What a label adds: "", ", fp16 gradients", ", top 1 % of gradients", ", 8-bit gradients", ", signs of
/// gradients", ", majority of signs", ", PowerSGD of rank 4".
std::string label_of(const Compression& compression);

/// What compression costs and saves, message by message (a bucket, or a parameter server's tensors). With n
/// gradients of e bytes in a message and N senders:
///
/// fp16 sends 2 n bytes: fp32 gradients rounded to half precision and back (each reads and writes 6 n bytes),
/// as PyTorch's fp16_compress_hook does.
///
/// top_k sends the k = ceil(ratio n) largest and their int32 indices, k (e + 4) bytes. What is not sent stays
/// in a residual as large as the gradients and is added to the next step's (Aji & Heafield, EMNLP 2017; Lin
/// et al., "Deep Gradient Compression", ICLR 2018, whose momentum correction and warm-up are not modelled).
/// To compress: gradients are added to the residual (3 n e bytes), one pass finds the threshold and one picks
/// (2 n e), and k pairs are written and taken out of the residual, k (2 e + 4). To decompress the pairs of
/// all: n e to clear the sum, and N k (3 e + 4) to add them in. N k (e + 4) bytes of buffer.
///
/// quantised sends b bits a gradient and the two fp32 numbers by which a message is scaled, n b/8 + 8 bytes.
/// With several bits they are rounded at random to 2^b levels (Alistarh et al., "QSGD", NIPS 2017), without a
/// residual: one pass finds the scale and one rounds (2 n e). With one bit the rounding error stays in a
/// residual (Seide et al., "1-Bit Stochastic Gradient Descent", Interspeech 2014): 4 n e more, to add it and to
/// write it. To decompress, all codes are read and summed: n e + N (n b/8 + 8), the size of the buffer but for
/// n e. Messages have scales of their own, so that codes cannot be added up on the way.
///
/// sign sends one bit a gradient. `mean`: and one fp32 number, the mean of their magnitudes, by which the signs
/// are scaled; what that leaves out stays in a residual, and the devices' messages are added up (Karimireddy,
/// Rebjock, Stich & Jaggi, "Error Feedback Fixes SignSGD", ICML 2019, algorithm 1, a message at a time): n/8 +
/// 4 bytes; adding the residual 3 n e, the sum of magnitudes n e, signs n e, the new residual 2 n e.
/// `majority`: the sign of the sum of all signs is the gradient (Bernstein, Zhao, Azizzadenesheli & Anandkumar,
/// "signSGD with Majority Vote", ICLR 2019), without a residual: n/8 bytes, signs n e. Both are gathered and
/// decoded as quantised gradients are. (The authors of the vote count on a server; here each device counts.)
///
/// These are single elementwise kernels; buffers are workspace, the residual counts as gradients. What
/// powersgd does with a message, which depends on its tensors, is LowRankBucket's.
class Compressor {
 public:
  /// @param senders whose compressed gradients a device gets, itself included; 1 where it only sends
  /// @throws InputError (at compression.pos): fp16 with gradients that are not fp32
  Compressor(const Compression& compression, const TrainingGraph& graph, std::size_t senders);

  bool active() const { return compression_.kind != Compression::Kind::none; }
  /// Bytes that a sender's message of `bytes` of gradients has once it is compressed.
  double sent_bytes(double bytes) const;
  /// Of a gradient as it is sent; 0: only some are.
  double sent_element_bytes() const;
  /// Of a message's gradients, how many are sent, rounded up (BucketMeaning::kept_share).
  double kept_share() const;

  /// Bytes of a message's residual, throughout the step.
  double residual_bytes(double bytes) const;

  BucketMeaning::Coding coding() const;
  std::int64_t coding_detail() const;  ///< BucketMeaning::detail

  /// Compresses message `index` in the task under way.
  /// @pre active(), and not powersgd
  /// @return the buffer that own and others' compressed gradients have from then on
  std::size_t add_compression(ComputeTasks& tasks, std::size_t index, double bytes) const;
  /// Appends a task that decompresses message `index`, when `arrived` is done, after which its buffer is
  /// free.
  TaskId add_decompression(ComputeTasks& tasks, std::size_t buffer, std::size_t index, double bytes,
                           TaskId arrived) const;
  /// Appends a task that frees the buffer of a message that this role only sends, when `sent` is done.
  static void add_release(ComputeTasks& tasks, std::size_t buffer, std::size_t index, TaskId sent);

 private:
  bool has_residual() const;
  double kept(double bytes) const;          ///< gradients of a message that top_k sends
  double buffer_bytes(double bytes) const;  ///< of a message

  Compression compression_;
  double element_bytes_, senders_;
};

}  // namespace convoy::lowering
