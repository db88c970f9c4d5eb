# The CUDA compiler, where there is one that is new enough: NEUROSHARD_CUDA_FOUND. Nothing else
# depends on it; without it the CUDA backend says at run time what is missing.
set(NEUROSHARD_CUDA_FOUND OFF)
if(NOT NEUROSHARD_CUDA)
  return()
endif()
include(CheckLanguage)
check_language(CUDA)
if(NOT CMAKE_CUDA_COMPILER)
  message(STATUS "CUDA: no nvcc found, the CUDA backend is left out")
  return()
endif()
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
  # Machine code of 8.0 runs on all of 8.x; newer chips than Hopper compile the code of 9.0 when the
  # program starts.
  set(CMAKE_CUDA_ARCHITECTURES 80-real 90 CACHE STRING "As for the property CUDA_ARCHITECTURES")
endif()
enable_language(CUDA)
if(CMAKE_CUDA_COMPILER_VERSION VERSION_LESS 12.8)
  message(STATUS "CUDA: expected nvcc 12.8 or newer, found ${CMAKE_CUDA_COMPILER_VERSION}: "
                 "the CUDA backend is left out")
  return()
endif()
find_package(CUDAToolkit 12.8 REQUIRED)
set(CMAKE_CUDA_STANDARD 20)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
set(CMAKE_CUDA_EXTENSIONS OFF)
set(NEUROSHARD_CUDA_FOUND ON)
message(STATUS "CUDA: nvcc ${CMAKE_CUDA_COMPILER_VERSION}, for ${CMAKE_CUDA_ARCHITECTURES}")
