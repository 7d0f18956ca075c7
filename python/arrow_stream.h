// SPDX-License-Identifier: MIT
#pragma once

#include <pybind11/pybind11.h>

#include <memory>

#include "python/table.h"

namespace convoy::bindings {

// A table for readers of Arrow by its PyCapsule interface
// (https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html): all rows in one batch of a
// struct, a column a child, whose buffers are the table's own.

/// "arrow_schema": an ArrowSchema.
pybind11::capsule schema_capsule(const std::shared_ptr<const Table>& table);

/// "arrow_array_stream": an ArrowArrayStream.
pybind11::capsule stream_capsule(const std::shared_ptr<const Table>& table);

}  // namespace convoy::bindings
