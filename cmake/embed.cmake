# Writes the header OUTPUT, which defines the string_view hone::embedded::NAME with the text of the
# file INPUT. The text is an array of bytes, because string literals are limited in length.
file(READ "${INPUT}" text HEX)
string(LENGTH "${text}" digits)
set(body "")
set(at 0)
while(at LESS digits)
  string(SUBSTRING "${text}" ${at} 64 piece)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," piece "${piece}")
  string(APPEND body "  ${piece}\n")
  math(EXPR at "${at} + 64")
endwhile()
math(EXPR bytes "${digits} / 2")
file(WRITE "${OUTPUT}"
  "#pragma once\n"
  "#include <string_view>\n"
  "namespace hone::embedded {\n"
  "inline constexpr unsigned char ${NAME}_bytes[] = {\n${body}  0};\n"
  "inline const std::string_view ${NAME}{"
  "reinterpret_cast<const char*>(${NAME}_bytes), ${bytes}};\n"
  "}  // namespace hone::embedded\n")
