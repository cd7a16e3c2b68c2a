# Finds LibTorch in a Python wheel. Torch's own CMake configuration cannot be used, because it needs
# the CUDA toolkit. HONE_TORCH (CMake or environment variable) names the torch package folder. The
# default is the folder that scripts/setup made, under HONE_DEPS or the user's cache.
# Provides:
#   hone::torch_cpu   libtorch_cpu and libc10, without CUDA's start-up cost. Programs that need the
#                     CUDA back end load it at run time.
#   hone::torch_cuda  hone::torch_cpu with libtorch_cuda, for the program that runs on a GPU.
# Sets HONE_CUDA_ROOT.
set(HONE_TORCH "$ENV{HONE_TORCH}" CACHE PATH "Folder of the torch Python package")
if(NOT HONE_TORCH)
  if(DEFINED ENV{HONE_DEPS})
    set(_deps "$ENV{HONE_DEPS}")
  elseif(DEFINED ENV{XDG_CACHE_HOME})
    set(_deps "$ENV{XDG_CACHE_HOME}/hone")
  else()
    set(_deps "$ENV{HOME}/.cache/hone")
  endif()
  file(GLOB _found "${_deps}/venv/lib/python3*/site-packages/torch")
  if(_found)
    list(GET _found 0 _first)
    set(HONE_TORCH "${_first}" CACHE PATH "Folder of the torch Python package" FORCE)
  endif()
endif()
find_library(HONE_TORCH_CPU_LIBRARY torch_cpu PATHS "${HONE_TORCH}/lib" NO_DEFAULT_PATH)
find_library(HONE_C10_LIBRARY c10 PATHS "${HONE_TORCH}/lib" NO_DEFAULT_PATH)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(HoneTorch
  REQUIRED_VARS HONE_TORCH_CPU_LIBRARY HONE_C10_LIBRARY
  REASON_FAILURE_MESSAGE "Run scripts/setup, or set HONE_TORCH to the folder of a torch package.")
if(HoneTorch_FOUND AND NOT TARGET hone::torch_cpu)
  get_filename_component(_site "${HONE_TORCH}" DIRECTORY)
  set(HONE_CUDA_ROOT "${_site}/nvidia/cu13"
    CACHE PATH "Folder of the CUDA 13 wheels (headers, NVRTC, cudart)")
  add_library(hone_torch_cpu INTERFACE)
  add_library(hone::torch_cpu ALIAS hone_torch_cpu)
  target_include_directories(hone_torch_cpu SYSTEM INTERFACE
    "${HONE_TORCH}/include"
    "${HONE_TORCH}/include/torch/csrc/api/include")
  target_link_libraries(hone_torch_cpu INTERFACE "${HONE_TORCH_CPU_LIBRARY}" "${HONE_C10_LIBRARY}")
  # The libtorch_cpu of the CUDA wheel needs cudart and CUPTI. They are next to it, and its RPATH
  # finds them at run time, so the linker may leave their symbols undefined.
  target_link_options(hone_torch_cpu INTERFACE
    "-Wl,-rpath,${HONE_TORCH}/lib"
    "-Wl,--allow-shlib-undefined"
    "-Wl,--unresolved-symbols=ignore-in-shared-libs")
  add_library(hone_torch_cuda INTERFACE)
  add_library(hone::torch_cuda ALIAS hone_torch_cuda)
  target_include_directories(hone_torch_cuda SYSTEM INTERFACE "${HONE_CUDA_ROOT}/include")
  target_link_libraries(hone_torch_cuda INTERFACE hone::torch_cpu
    -Wl,--no-as-needed "${HONE_TORCH}/lib/libtorch_cuda.so" -Wl,--as-needed
    "${HONE_TORCH}/lib/libc10_cuda.so"
    "${HONE_CUDA_ROOT}/lib/libcudart.so.13")
  target_link_options(hone_torch_cuda INTERFACE "-Wl,-rpath,${HONE_CUDA_ROOT}/lib")
endif()
