// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <filesystem>

#include "sim/base/csv.h"
#include "tests/support/working_file.h"

using namespace convoy;

namespace {

CsvTable table_of(const std::string& text) {
  const WorkingFile file("test_csv.csv", text);
  return CsvTable(file.name, {"name", "size", "note"}, {"name"});
}

std::string error_of(const std::string& text) {
  try {
    const CsvTable table = table_of(text);
    for (const CsvRow& row : table.rows()) (void)table.number(row, "size", true);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("csv: cells by column, quoted or not, comments and empty lines are left out") {
  const CsvTable table = table_of("# a comment\nsize,name\r\n\n3,\"a, \"\"b\"\"\"\n# another\n4.5,\n");
  REQUIRE(table.rows().size() == 2);
  CHECK(table.text(table.rows()[0], "name") == "a, \"b\"");
  CHECK(table.number(table.rows()[0], "size", true) == 3);
  CHECK(table.number(table.rows()[1], "size", false) == 4.5);
  CHECK(table.find(table.rows()[1], "name") == nullptr);
  CHECK(table.find(table.rows()[1], "note") == nullptr);
  CHECK(table.has("size"));
  CHECK_FALSE(table.has("note"));
  CHECK(table.rows()[1][0].pos == SourcePos{"test_csv.csv", 6, 1});
}

TEST_CASE("csv: a byte order mark is no part of the first column's name") {
  const CsvTable table = table_of("\xEF\xBB\xBFname,size\na,3\n");
  REQUIRE(table.rows().size() == 1);
  CHECK(table.text(table.rows()[0], "name") == "a");
}

TEST_CASE("csv: a file of 64 MiB is read, and one byte more is refused") {
  const WorkingFile file("test_csv.csv", "name\na\n#");
  const auto read = [&] { return CsvTable(file.name, {"name"}, {"name"}).rows().size(); };
  std::filesystem::resize_file(file.name, 64u << 20);
  CHECK(read() == 1);
  std::filesystem::resize_file(file.name, (64u << 20) + 1);
  CHECK_THROWS_WITH_AS(read(), "test_csv.csv: is larger than 64 MiB", InputError);
}

TEST_CASE("csv: what is wrong is said with its place") {
  CHECK(error_of("name,sise\n") ==
        "test_csv.csv:1:6: unknown column 'sise' (did you mean 'size'?); there are name, size, note");
  CHECK(error_of("name,size,name\n") == "test_csv.csv:1:11: column 'name' is there twice");
  CHECK(error_of("size\n") == "test_csv.csv:1:1: column 'name' is missing");
  CHECK(error_of("name,size\na\n") == "test_csv.csv:2:1: 1 cells where the header has 2");
  CHECK(error_of("name,size\n\"a,1\n") == "test_csv.csv:2:1: a quoted cell does not end on its line");
  CHECK(error_of("name,size\n\"a\"b,1\n") == "test_csv.csv:2:1: expected a comma after the closing quote");
  CHECK(error_of("name,size\na,-1\n") == "test_csv.csv:2:3: size: expected a number above zero, found '-1'");
  CHECK(error_of("name,size\na,nan\n") ==
        "test_csv.csv:2:3: size: expected a number above zero, found 'nan'");
  CHECK(error_of("name\na\n") == "test_csv.csv:2:1: size: expected a number above zero, found ''");
}
