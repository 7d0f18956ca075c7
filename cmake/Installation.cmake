# SPDX-License-Identifier: MIT
# What `cmake --install` installs: the program with its data, manual pages and completion, the Python module, and the
# library for programs of one's own (component `development`).

# What the program reads (sim/base/data_path.h): beside an installed bin/convoy, in share/convoy.
install(DIRECTORY models/zoo models/data DESTINATION ${CMAKE_INSTALL_DATADIR}/convoy/models)
install(DIRECTORY topologies/catalog DESTINATION ${CMAKE_INSTALL_DATADIR}/convoy/topologies)
install(DIRECTORY configs DESTINATION ${CMAKE_INSTALL_DATADIR}/convoy)
install(DIRECTORY results/published DESTINATION ${CMAKE_INSTALL_DATADIR}/convoy/results)

install(FILES README.md CHANGELOG.md CITATION.cff DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR})

# Manual pages are what the program says of itself; those of its helpers are written by hand.
set(manual ${CMAKE_BINARY_DIR}/manual)
file(MAKE_DIRECTORY ${manual})
foreach(page sim/mpi/convoy-mpi.1 strategies/partition/zoltan/convoy-zoltan.1)
  cmake_path(GET page STEM helper)
  if(TARGET ${helper})
    list(APPEND helper_pages ${PROJECT_SOURCE_DIR}/${page})
  endif()
endforeach()
if(helper_pages)
  set(copy_pages COMMAND ${CMAKE_COMMAND} -E copy ${helper_pages} ${manual})
endif()
find_program(GZIP_PROGRAM gzip)
if(GZIP_PROGRAM)
  set(compress COMMAND sh -c "exec '${GZIP_PROGRAM}' -9n '${manual}'/*.[15]")
endif()
add_custom_command(OUTPUT ${manual}/made
                   COMMAND ${CMAKE_COMMAND} -E rm -rf ${manual}
                   COMMAND ${CMAKE_COMMAND} -E make_directory ${manual}
                   COMMAND convoy manual ${manual}
                   ${copy_pages}
                   ${compress}
                   COMMAND ${CMAKE_COMMAND} -E touch ${manual}/made
                   DEPENDS convoy ${helper_pages} COMMENT "Writing manual pages" VERBATIM)
add_custom_target(manual ALL DEPENDS ${manual}/made)
foreach(section 1 5)
  install(DIRECTORY ${manual}/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section}
          FILES_MATCHING PATTERN "*.${section}" PATTERN "*.${section}.gz")
endforeach()

# Completion asks the program. Debian's zsh looks into a folder of its own (cmake/Packages.cmake).
set(completion ${PROJECT_SOURCE_DIR}/sim/cli/completion)
install(FILES ${completion}/convoy.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME convoy)
install(FILES ${completion}/_convoy DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions COMPONENT zsh)
install(FILES ${completion}/convoy.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)

# The library: all rooms, as convoy::convoy.
add_library(convoy_library INTERFACE)
set_target_properties(convoy_library PROPERTIES EXPORT_NAME convoy)
target_link_libraries(convoy_library INTERFACE convoy_cli)
set(library ${CMAKE_INSTALL_LIBDIR}/cmake/convoy)
set(libraries ${fast_rooms} ${other_rooms} ${telling_rooms})
list(TRANSFORM libraries PREPEND convoy_)
install(TARGETS convoy_library convoy_options ${libraries} EXPORT convoy
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}/convoy COMPONENT development)
install(EXPORT convoy NAMESPACE convoy:: FILE convoyTargets.cmake DESTINATION ${library} COMPONENT development)
foreach(room models topologies strategies sim)
  install(DIRECTORY ${room} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/convoy COMPONENT development
          FILES_MATCHING PATTERN "*.h" PATTERN zoo EXCLUDE PATTERN catalog EXCLUDE PATTERN mpi EXCLUDE
          PATTERN completion EXCLUDE)
endforeach()
include(CMakePackageConfigHelpers)
configure_package_config_file(cmake/convoyConfig.cmake.in ${CMAKE_BINARY_DIR}/convoyConfig.cmake
                              INSTALL_DESTINATION ${library} PATH_VARS CMAKE_INSTALL_DATADIR)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/convoyConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/convoyConfig.cmake ${CMAKE_BINARY_DIR}/convoyConfigVersion.cmake
              cmake/FindMETIS.cmake cmake/FindSCOTCH.cmake DESTINATION ${library} COMPONENT development)
