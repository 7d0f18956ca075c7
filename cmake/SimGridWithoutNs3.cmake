# SPDX-License-Identifier: MIT
# Debian's SimGrid is linked against ns-3, for one of its network models. Nothing here uses that model, but ns-3's libraries take
# longer to start than a small simulation takes, and half of the process's memory. So the programs find in their place a library
# that has the names of ns-3's functions only. All of them do nothing: SimGrid keeps a few of ns-3's objects in static variables,
# and makes them whether they are used or not.
#
# A SimGrid without ns-3 needs nothing of this, and a program that does not find this library starts with the system's ns-3.
# Building SimGrid from its sources with the model switched off comes to the same, but takes longer than building this project.

if(NOT CMAKE_READELF OR NOT CMAKE_NM)
  return()
endif()
find_library(SIMGRID_LIBRARY simgrid HINTS ${SimGrid_LIBRARY_DIRS} REQUIRED)
execute_process(COMMAND ${CMAKE_READELF} -dW ${SIMGRID_LIBRARY} OUTPUT_VARIABLE dynamic_section ERROR_QUIET)
string(REGEX MATCHALL "libns3[-a-z0-9.]*[.]so[.0-9]*" ns3_libraries "${dynamic_section}")
if(NOT ns3_libraries)
  return()
endif()
execute_process(COMMAND ${CMAKE_NM} -D --undefined-only ${SIMGRID_LIBRARY} OUTPUT_VARIABLE undefined_symbols)
string(REGEX MATCHALL "[_A-Za-z0-9]*3ns3[_A-Za-z0-9]*" ns3_symbols "${undefined_symbols}")
if(NOT ns3_symbols)
  return()
endif()

set(names "")
foreach(symbol ${ns3_symbols})
  string(APPEND names "    \".globl ${symbol}\\n.set ${symbol}, convoy_without_ns3\\n\"\n")
endforeach()
file(CONFIGURE OUTPUT without_ns3.cpp @ONLY CONTENT [=[
// Made by cmake/SimGridWithoutNs3.cmake, which says why.
extern "C" void* convoy_without_ns3() { return nullptr; }

asm(
@names@);
]=])

# One library; the names of the others are links to it.
set(without_ns3 "${CMAKE_BINARY_DIR}/lib/convoy")
list(POP_FRONT ns3_libraries first_name)
add_library(convoy_without_ns3 MODULE "${CMAKE_CURRENT_BINARY_DIR}/without_ns3.cpp")
set_target_properties(convoy_without_ns3 PROPERTIES PREFIX "" OUTPUT_NAME ${first_name} SUFFIX "" NO_SONAME ON
                                                    LIBRARY_OUTPUT_DIRECTORY "${without_ns3}")
file(MAKE_DIRECTORY "${without_ns3}")
foreach(name ${ns3_libraries})
  file(CREATE_LINK ${first_name} "${without_ns3}/${name}" SYMBOLIC)
endforeach()

# Only the older kind of run path is searched for libraries of libraries.
add_link_options(LINKER:--disable-new-dtags)
set(CMAKE_BUILD_RPATH "${without_ns3}")
set(CMAKE_INSTALL_RPATH "$ORIGIN/../lib/convoy/ns3")
install(TARGETS convoy_without_ns3 LIBRARY DESTINATION lib/convoy/ns3)
foreach(name ${ns3_libraries})
  install(FILES "${without_ns3}/${name}" DESTINATION lib/convoy/ns3)
endforeach()
