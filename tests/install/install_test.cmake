# Installs the build into a fresh prefix that is then moved, and from there runs the executable, which
# finds the models installed with it; compiles each header that was installed, alone and without a
# warning; and builds and runs the example. Nothing else is installed.
cmake_minimum_required(VERSION 3.25)

function(run)
  execute_process(COMMAND ${ARGN} OUTPUT_VARIABLE output ERROR_VARIABLE output
    RESULT_VARIABLE result)
  if(NOT result EQUAL 0)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "${command}: expected exit code 0, got ${result}\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

function(expect text pattern)
  if(NOT text MATCHES "${pattern}")
    message(FATAL_ERROR "expected a match of \"${pattern}\", got\n${text}")
  endif()
endfunction()

# Configures and builds the project in `folder` with nothing but the prefix to go by.
function(build name folder)
  run(${CMAKE_COMMAND} -S ${folder} -B ${work_dir}/${name} -G ${generator}
    -D CMAKE_CXX_COMPILER=${compiler} -D CMAKE_PREFIX_PATH=${prefix}
    -D "CMAKE_CXX_FLAGS=-Wall -Wextra -Wpedantic -Werror")
  run(${CMAKE_COMMAND} --build ${work_dir}/${name})
endfunction()

set(prefix ${work_dir}/moved)
file(REMOVE_RECURSE ${work_dir})
run(${CMAKE_COMMAND} --install ${build_dir} --prefix ${work_dir}/prefix)
file(RENAME ${work_dir}/prefix ${prefix})

# The installed files: the expected ones, and none of the Python package's, which the build may contain.
file(GLOB_RECURSE files RELATIVE ${prefix} ${prefix}/*)
foreach(file ${files})
  if(NOT file MATCHES "^(bin/neuroshard|include/neuroshard/.*\\.h|share/neuroshard/models/[^/]*\\.safetensors|share/bash-completion/completions/neuroshard|share/zsh/site-functions/_neuroshard|share/fish/vendor_completions\\.d/neuroshard\\.fish|lib.*/cmake/neuroshard/.*\\.cmake|lib.*/libneuroshard\\.a)$")
    message(FATAL_ERROR "expected no file ${file} below the prefix, found one")
  endif()
endforeach()

# The models: those of the prefix, not those of the source tree, and those of $NEUROSHARD_MODELS first.
unset(ENV{NEUROSHARD_MODELS})
run(${prefix}/bin/neuroshard --version)
expect("${output}" "^[0-9]+\\.[0-9]+\\.[0-9]+")
run(${prefix}/bin/neuroshard model list)
set(listed "${output}")
if(listed MATCHES "${source_dir}/models")
  message(FATAL_ERROR "expected the prefix's models, got the source tree's\n${listed}")
endif()
file(GLOB models RELATIVE ${source_dir}/models ${source_dir}/models/*.safetensors)
foreach(model ${models})
  if(NOT EXISTS ${prefix}/share/neuroshard/models/${model})
    message(FATAL_ERROR "expected model ${model} below the prefix, found none")
  endif()
  expect("${listed}" "${prefix}/share/neuroshard/models/${model}")
endforeach()
file(COPY ${source_dir}/models/cpu-xeon-2core.safetensors DESTINATION ${work_dir}/own)
set(ENV{NEUROSHARD_MODELS} ${work_dir}/own)
run(${prefix}/bin/neuroshard model list)
expect("${output}" "${work_dir}/own/cpu-xeon-2core.safetensors")
unset(ENV{NEUROSHARD_MODELS})

# Each header alone: none may need one that was left behind, or one that its user must include first.
file(GLOB_RECURSE headers RELATIVE ${prefix}/include ${prefix}/include/*.h)
set(sources "")
foreach(header ${headers})
  string(MAKE_C_IDENTIFIER ${header} name)
  file(WRITE ${work_dir}/headers_source/${name}.cpp "#include \"${header}\"\n")
  list(APPEND sources ${name}.cpp)
endforeach()
list(JOIN sources " " sources)
file(WRITE ${work_dir}/headers_source/CMakeLists.txt "
cmake_minimum_required(VERSION 3.25)
project(headers LANGUAGES CXX)
find_package(neuroshard REQUIRED)
add_library(headers OBJECT ${sources})
target_link_libraries(headers PRIVATE neuroshard::neuroshard)
")
build(headers ${work_dir}/headers_source)

build(example ${source_dir}/examples/plan_tables)
run(${CMAKE_COMMAND} -E chdir ${work_dir}/example ./plan_tables)
expect("${output}" "^8 tables on 4 devices.*\nneuroshard: predicted cost [0-9.]+ ms")
run(${prefix}/bin/neuroshard check ${work_dir}/example/plan.json)
