# Provides the target hone_options and the functions hone_room and hone_embed.

# hone_options: compile options of all targets. Language level, warnings as errors, sanitizers.
add_library(hone_options INTERFACE)
target_compile_features(hone_options INTERFACE cxx_std_20)
target_compile_options(hone_options INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor
  $<$<BOOL:${HONE_WERROR}>:-Werror>
  -Wno-restrict  # GCC 12 warns about libstdc++'s own string concatenation (GCC bug 105651)
  # GCC collects its garbage from 1 GiB on, not 128 MiB: a tenth less time for a sixth more memory.
  $<$<CXX_COMPILER_ID:GNU>:--param=ggc-min-heapsize=1048576>)
target_include_directories(hone_options INTERFACE "${PROJECT_SOURCE_DIR}" "${PROJECT_BINARY_DIR}")
set(HONE_SANITIZE "" CACHE STRING "Sanitizers, as in -fsanitize=")
if(HONE_SANITIZE)
  target_compile_options(hone_options INTERFACE
    "-fsanitize=${HONE_SANITIZE}" -fno-omit-frame-pointer -fno-sanitize=vptr)
  target_link_options(hone_options INTERFACE "-fsanitize=${HONE_SANITIZE}")
endif()

# hone_room(NAME SOURCES ... [LINK ...] [PRIVATE_LINK ...]): adds a static library for one room, the
# code of one folder. LINK is passed on to targets that link the room, PRIVATE_LINK is not.
function(hone_room name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINK;PRIVATE_LINK" ${ARGN})
  add_library(${name} STATIC ${arg_SOURCES})
  target_link_libraries(${name} PUBLIC ${arg_LINK} PRIVATE hone_options ${arg_PRIVATE_LINK})
  target_include_directories(${name} PUBLIC "${PROJECT_SOURCE_DIR}" "${PROJECT_BINARY_DIR}")
endfunction()

# hone_embed(TARGET NAME FILE): compiles the text of FILE into TARGET. The header
# "embedded/NAME.hpp" declares it as `std::string_view hone::embedded::NAME`.
function(hone_embed target name file)
  set(header "${PROJECT_BINARY_DIR}/embedded/${name}.hpp")
  add_custom_command(
    OUTPUT "${header}"
    COMMAND ${CMAKE_COMMAND}
            -DNAME=${name}
            "-DINPUT=${CMAKE_CURRENT_SOURCE_DIR}/${file}"
            "-DOUTPUT=${header}"
            -P "${PROJECT_SOURCE_DIR}/cmake/embed.cmake"
    DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/${file}" "${PROJECT_SOURCE_DIR}/cmake/embed.cmake"
    VERBATIM)
  target_sources(${target} PRIVATE "${header}")
endfunction()
