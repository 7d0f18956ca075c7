// SPDX-License-Identifier: MIT
#include "sim/base/document_kind.h"

#include <fmt/format.h>

#include <array>

namespace convoy::inline base {
namespace {

struct DocumentRow {
  DocumentKind kind;
  const char* key;  ///< top-level key that only files of this kind have, apart from kinds in earlier rows
  const char* what;
  const char* taken_by;
};

constexpr std::array document_rows{
    DocumentRow{DocumentKind::results, "schema", "the results of a run",
                "`convoy report DIR` takes their folder"},
    DocumentRow{DocumentKind::experiment, "experiment", "an experiment", "`convoy run FILE` simulates it"},
    DocumentRow{DocumentKind::model, "layers", "a model",
                "`convoy show models FILE` shows it, and an experiment names it by model: {file: FILE}"},
    DocumentRow{DocumentKind::operation_graph, "edges", "an operation graph",
                "`convoy partition FILE` cuts it"},
    DocumentRow{DocumentKind::cluster, "nodes", "a cluster",
                "`convoy show clusters FILE` shows it, and an experiment has it behind its key cluster"},
};

const char* name_of(DocumentKind kind) {
  for (const DocumentRow& row : document_rows)
    if (row.kind == kind) return row.what;
  return "";
}

}  // namespace

void refuse_other_document(const YamlNode& document, DocumentKind wanted) {
  for (const DocumentRow& row : document_rows) {
    if (!document.find(row.key)) continue;
    if (row.kind != wanted)
      throw InputError(document.pos, fmt::format("this is {} (it has the key '{}'), not {}: {}", row.what,
                                                 row.key, name_of(wanted), row.taken_by));
    return;
  }
}

}  // namespace convoy::base
