// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include "sim/base/yaml_node.h"

namespace convoy::inline base {

/// Kinds of files that convoy reads and distinguishes by their top-level keys.
enum class DocumentKind : std::uint8_t { results, experiment, model, cluster, operation_graph };

/// Refuses a file of another kind than the wanted one, saying what it is and which command takes it. Does
/// nothing if the file may be of the wanted kind, or is of no known kind. @throws InputError at the
/// document's begin
void refuse_other_document(const YamlNode& document, DocumentKind wanted);

}  // namespace convoy::base
