# SPDX-License-Identifier: MIT
# `ninja api-docs` writes the reference of the library's headers, api-docs/html/index.html, where Doxygen is installed.
find_package(Doxygen 1.9 QUIET)
if(NOT DOXYGEN_FOUND)
  return()
endif()

set(DOXYGEN_PROJECT_BRIEF ${PROJECT_DESCRIPTION})
set(DOXYGEN_FILE_PATTERNS *.h)
set(DOXYGEN_STRIP_FROM_PATH ${PROJECT_SOURCE_DIR})
set(DOXYGEN_JAVADOC_AUTOBRIEF YES)
set(DOXYGEN_DISTRIBUTE_GROUP_DOC YES)
set(DOXYGEN_HAVE_DOT NO)
set(DOXYGEN_QUIET YES)
set(DOXYGEN_WARN_AS_ERROR FAIL_ON_WARNINGS)
set(DOXYGEN_WARN_IF_INCOMPLETE_DOC NO)  # parameters are described where their names do not say what they are
# Doxygen knows no `namespace a::inline b`, and wants comparisons that are as expected described as well.
set(DOXYGEN_INPUT_FILTER "sed -e 's|^namespace convoy::inline \\([a-z_]*\\) {|namespace convoy { inline namespace \\1 {|' -e 's|^}  // namespace convoy::.*|} }|' -e 's|.* operator==(.*= default;||'")
set(DOXYGEN_EXCLUDE_SYMBOLS *_detail *_detail::*)

set(DOXYGEN_EXTRACT_ALL YES)
set(DOXYGEN_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/api-docs)
set(DOXYGEN_USE_MDFILE_AS_MAINPAGE cmake/api_docs.md)
set(DOXYGEN_VERBATIM_HEADERS NO)
doxygen_add_docs(api-docs cmake/api_docs.md models topologies sim strategies COMMENT "Writing the reference of the headers")

# Of the headers that programs of one's own are written with, nothing may lack a description: those that the examples of
# docs/extending.md include, and what these pass on to them.
file(GLOB examples CONFIGURE_DEPENDS tests/installed/*.cpp tests/extending/*.h tests/extending/*.cpp)
list(FILTER examples EXCLUDE REGEX "/test_")
set(interface sim/base/keys.h sim/base/yaml_map.h sim/base/yaml_node.h sim/run/experiment.h sim/run/sweep.h)
foreach(example ${examples})
  file(STRINGS ${example} includes REGEX "^#include \"(models|topologies|sim|strategies)/")
  list(TRANSFORM includes REPLACE "#include \"(.*)\"" "\\1")
  list(APPEND interface ${includes})
endforeach()
list(REMOVE_DUPLICATES interface)
set(DOXYGEN_EXTRACT_ALL NO)
set(DOXYGEN_GENERATE_HTML NO)
set(DOXYGEN_GENERATE_XML YES)  # Doxygen wants something to write
set(DOXYGEN_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/api-docs-check)
doxygen_add_docs(api-docs-check ${interface} COMMENT "Looking for headers' declarations without a description")
