# What `cmake --install` puts below the prefix, and the package that find_package(neuroshard) finds.
include(CMakePackageConfigHelpers)
set(NEUROSHARD_MODEL_DIR ${CMAKE_INSTALL_DATADIR}/neuroshard/models)
set(NEUROSHARD_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/neuroshard)

install(TARGETS neuroshard_cli)
install(TARGETS neuroshard EXPORT neuroshard_targets)
# Headers that only their own room includes stay behind.
install(DIRECTORY neuroshard DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING PATTERN "*.h"
  PATTERN "collect/compute/cuda" EXCLUDE
  PATTERN "*_detail.h" EXCLUDE
  PATTERN "*_kernel.h" EXCLUDE)
# The folder itself, because the package names it, even where no model has been trained yet.
install(DIRECTORY DESTINATION ${NEUROSHARD_MODEL_DIR})
install(DIRECTORY models/ DESTINATION ${NEUROSHARD_MODEL_DIR} OPTIONAL
  FILES_MATCHING PATTERN "*.safetensors")

install(EXPORT neuroshard_targets NAMESPACE neuroshard:: FILE neuroshard-targets.cmake
  DESTINATION ${NEUROSHARD_PACKAGE_DIR})
configure_package_config_file(cmake/neuroshard-config.cmake.in neuroshard-config.cmake
  INSTALL_DESTINATION ${NEUROSHARD_PACKAGE_DIR} PATH_VARS NEUROSHARD_MODEL_DIR)
# Before 1.0 a new minor version may change the interface.
write_basic_package_version_file(neuroshard-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES
  ${PROJECT_BINARY_DIR}/neuroshard-config.cmake
  ${PROJECT_BINARY_DIR}/neuroshard-config-version.cmake
  DESTINATION ${NEUROSHARD_PACKAGE_DIR})
