# What every target of Hone shares: language level, warnings as errors, sanitizers; and the shape of a room.
add_library(hone_options INTERFACE)
target_compile_features(hone_options INTERFACE cxx_std_20)
target_compile_options(hone_options INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Werror
  -Wno-restrict)  # GCC 12 warns of its own string concatenation (GCC bug 105651)
target_include_directories(hone_options INTERFACE "${PROJECT_SOURCE_DIR}" "${PROJECT_BINARY_DIR}")
set(HONE_SANITIZE "" CACHE STRING "Sanitizers, as in -fsanitize=")
if(HONE_SANITIZE)
  target_compile_options(hone_options INTERFACE "-fsanitize=${HONE_SANITIZE}" -fno-omit-frame-pointer -fno-sanitize=vptr)
  target_link_options(hone_options INTERFACE "-fsanitize=${HONE_SANITIZE}")
endif()

# hone_room(NAME SOURCES ... LINK ...): a static library for one room, linked into whatever uses it.
function(hone_room name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINK;PRIVATE_LINK" ${ARGN})
  add_library(${name} STATIC ${arg_SOURCES})
  target_link_libraries(${name} PUBLIC ${arg_LINK} PRIVATE hone_options ${arg_PRIVATE_LINK})
  target_include_directories(${name} PUBLIC "${PROJECT_SOURCE_DIR}" "${PROJECT_BINARY_DIR}")
endfunction()

# hone_embed(TARGET NAME FILE): compiles FILE's text into TARGET as `std::string_view NAME` of the header "embedded/NAME.hpp".
function(hone_embed target name file)
  set(header "${PROJECT_BINARY_DIR}/embedded/${name}.hpp")
  add_custom_command(
    OUTPUT "${header}"
    COMMAND ${CMAKE_COMMAND} -DNAME=${name} "-DINPUT=${CMAKE_CURRENT_SOURCE_DIR}/${file}" "-DOUTPUT=${header}"
            -P "${PROJECT_SOURCE_DIR}/cmake/embed.cmake"
    DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/${file}" "${PROJECT_SOURCE_DIR}/cmake/embed.cmake"
    VERBATIM)
  target_sources(${target} PRIVATE "${header}")
endfunction()
