# What `cmake --install` puts below the prefix, and the package that find_package(neuroshard) finds.
# Component `neuroshard` is the executable with its completions, the library, its public headers and
# the models; component `python`, of the Python package alone, is in no installation that does not
# name it.
include(CMakePackageConfigHelpers)
set(NEUROSHARD_MODEL_DIR ${CMAKE_INSTALL_DATADIR}/neuroshard/models)
set(NEUROSHARD_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/neuroshard)

# The public headers, all that are installed. They include each other and none besides, the symbols
# that they declare are in the library `neuroshard`, and each compiles alone without a warning of
# -Wall -Wextra (tests/install sees to it). A member without an initializer of its own would be such a
# warning where users write {.name = ...}: hence the {}.
set(NEUROSHARD_PUBLIC_HEADERS
  neuroshard.h
  core/device_transfer.h
  core/error.h
  core/piece.h
  core/sharding_plan.h
  core/stop_clock.h
  core/table.h
  core/task.h
  core/units.h
  core/version.h
  cost/communication/communication_cost_model.h
  cost/compute/compute_cost_model.h
  cost/model_catalog.h
  cost/simulator.h
  io/json/json.h
  io/plan_io.h
  io/task_io.h
  plan/plan_task.h
  plan/replan_task.h
  report/planning_report.h
  search/planner.h
  search/search_stats.h
  workload/task_settings.h
  workload/workload.h)

set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME neuroshard)
install(TARGETS neuroshard_cli)
install(TARGETS neuroshard EXPORT neuroshard_targets)
get_target_property(library_sources neuroshard SOURCES)
foreach(header ${NEUROSHARD_PUBLIC_HEADERS})
  if(NOT EXISTS ${PROJECT_SOURCE_DIR}/neuroshard/${header})
    message(FATAL_ERROR "NEUROSHARD_PUBLIC_HEADERS: expected a header of neuroshard/, got ${header}")
  endif()
  cmake_path(REPLACE_EXTENSION header .cpp OUTPUT_VARIABLE source)
  set(source ${PROJECT_SOURCE_DIR}/neuroshard/${source})
  if(EXISTS ${source} AND NOT source IN_LIST library_sources)
    message(FATAL_ERROR "NEUROSHARD_PUBLIC_HEADERS: expected ${header}'s symbols in the library "
      "neuroshard, but it does not have ${source}")
  endif()
  cmake_path(GET header PARENT_PATH folder)
  install(FILES neuroshard/${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/neuroshard/${folder})
endforeach()
# The folder itself, because the package names it, even where no model has been trained yet.
install(DIRECTORY DESTINATION ${NEUROSHARD_MODEL_DIR})
install(DIRECTORY models/ DESTINATION ${NEUROSHARD_MODEL_DIR} OPTIONAL
  FILES_MATCHING PATTERN "*.safetensors")

# Completions, which the executable itself makes, where bash, zsh and fish look for those of programs.
set(completions ${PROJECT_BINARY_DIR}/completions)
install(CODE "
  file(MAKE_DIRECTORY \"${completions}\")
  foreach(shell bash zsh fish)
    execute_process(COMMAND \"$<TARGET_FILE:neuroshard_cli>\" completion \${shell}
      -o \"${completions}/neuroshard.\${shell}\" COMMAND_ERROR_IS_FATAL ANY)
  endforeach()" COMPONENT neuroshard)
install(FILES ${completions}/neuroshard.bash
  DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME neuroshard)
install(FILES ${completions}/neuroshard.zsh
  DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions RENAME _neuroshard)
install(FILES ${completions}/neuroshard.fish
  DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)

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
