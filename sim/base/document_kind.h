// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include "sim/base/yaml_node.h"

namespace convoy::inline base {

/// Files that convoy reads and that are told apart by the keys at their top.
enum class DocumentKind : std::uint8_t { results, experiment, model, cluster, operation_graph };

/// Says what a file is that was given where one of another kind is wanted, and what takes it; does nothing
/// where it may be what is wanted, or none of the kinds. @throws InputError at the document's begin
void refuse_other_document(const YamlNode& document, DocumentKind wanted);

}  // namespace convoy::base
