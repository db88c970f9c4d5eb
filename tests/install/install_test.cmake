# Installs the build into a fresh prefix, and from there runs the executable, compiles every header
# that was installed, and builds and runs the example.
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
    -D CMAKE_CXX_COMPILER=${compiler} -D CMAKE_PREFIX_PATH=${prefix})
  run(${CMAKE_COMMAND} --build ${work_dir}/${name})
endfunction()

set(prefix ${work_dir}/prefix)
file(REMOVE_RECURSE ${work_dir})
run(${CMAKE_COMMAND} --install ${build_dir} --prefix ${prefix})

run(${prefix}/bin/neuroshard --version)
expect("${output}" "^[0-9]+\\.[0-9]+\\.[0-9]+")

file(GLOB models RELATIVE ${source_dir}/models ${source_dir}/models/*.safetensors)
foreach(model ${models})
  if(NOT EXISTS ${prefix}/share/neuroshard/models/${model})
    message(FATAL_ERROR "expected model ${model} below the prefix, found none")
  endif()
endforeach()

# All headers together: none may need one that was left behind.
file(GLOB_RECURSE headers RELATIVE ${prefix}/include ${prefix}/include/*.h)
set(lines "")
foreach(header ${headers})
  string(APPEND lines "#include \"${header}\"\n")
endforeach()
file(WRITE ${work_dir}/headers_source/headers.cpp "${lines}")
file(WRITE ${work_dir}/headers_source/CMakeLists.txt "
cmake_minimum_required(VERSION 3.25)
project(headers LANGUAGES CXX)
find_package(neuroshard REQUIRED)
add_library(headers OBJECT headers.cpp)
target_link_libraries(headers PRIVATE neuroshard::neuroshard)
")
build(headers ${work_dir}/headers_source)

build(example ${source_dir}/examples/plan_tables)
run(${work_dir}/example/plan_tables)
expect("${output}" "^predicted [0-9.]+ ms per iteration.*\ndevice 3: .*columns 0 to ")
