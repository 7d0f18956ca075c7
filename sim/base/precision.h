// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace convoy::inline base {

/// The number format of the network's arithmetic. fp16 and bf16 mean mixed precision: 2-byte activations,
/// fp32 master weights.
enum class Precision : std::uint8_t { fp32, tf32, fp16, bf16 };
inline constexpr std::array<std::string_view, 4> precision_names{"fp32", "tf32", "fp16", "bf16"};
constexpr std::string_view to_string(Precision p) { return precision_names[static_cast<std::size_t>(p)]; }
/// Bytes of an activation or gradient element: 4, or 2 for fp16 and bf16.
constexpr int element_bytes(Precision p) { return p == Precision::fp16 || p == Precision::bf16 ? 2 : 4; }

}  // namespace convoy::base
