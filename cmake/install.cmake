# `cmake --install build/release --prefix DIR`: installs the program, the library with its headers, and the files for
# find_package(quern) and pkg-config. All paths in them are relative, so that DIR may be moved.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(QUERN_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/quern)
install(TARGETS quern_lib EXPORT quernTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
if(TARGET quern_program)
  install(TARGETS quern_program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  if(TARGET quern_mpi)
    install(TARGETS quern_mpi LIBRARY DESTINATION lib/quern)
  endif()
  # Started by `quern bench`; installed only if it was built.
  install(TARGETS quern_bench_program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} OPTIONAL)
endif()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/quern DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT quernTargets NAMESPACE quern:: DESTINATION ${QUERN_PACKAGE_DIR})

set(QUERN_PACKAGE_FILES ${PROJECT_BINARY_DIR}/package)
configure_package_config_file(cmake/quernConfig.cmake.in ${QUERN_PACKAGE_FILES}/quernConfig.cmake
  INSTALL_DESTINATION ${QUERN_PACKAGE_DIR} NO_SET_AND_CHECK_MACRO NO_CHECK_REQUIRED_COMPONENTS_MACRO)
# While the version is 0.x, a new minor version may change the interface.
write_basic_package_version_file(${QUERN_PACKAGE_FILES}/quernConfigVersion.cmake COMPATIBILITY SameMinorVersion)
configure_file(cmake/dependencies.cmake ${QUERN_PACKAGE_FILES}/quernDependencies.cmake COPYONLY)
install(FILES ${QUERN_PACKAGE_FILES}/quernConfig.cmake ${QUERN_PACKAGE_FILES}/quernConfigVersion.cmake
  ${QUERN_PACKAGE_FILES}/quernDependencies.cmake DESTINATION ${QUERN_PACKAGE_DIR})

file(RELATIVE_PATH QUERN_PREFIX_FROM_PC /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" QUERN_PREFIX_FROM_PC "${QUERN_PREFIX_FROM_PC}")
configure_file(cmake/quern.pc.in ${QUERN_PACKAGE_FILES}/quern.pc @ONLY)
install(FILES ${QUERN_PACKAGE_FILES}/quern.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
