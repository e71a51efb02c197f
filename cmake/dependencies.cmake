# The libraries that a program must link in addition to libquern.a. Included by the build and by the installed package
# (quernConfig.cmake). Sets quern_missing to the Debian packages of those that are not installed.
set(quern_missing "")

find_package(Threads QUIET)
find_package(fmt QUIET CONFIG)
if(NOT TARGET fmt::fmt)
  list(APPEND quern_missing libfmt-dev)
endif()
find_package(ZLIB QUIET)
if(NOT TARGET ZLIB::ZLIB)
  list(APPEND quern_missing zlib1g-dev)
endif()

# Debian's packages of these have no CMake configuration, or one that pulls in more than the library. The symbolic link
# libNAME.so comes with the headers, so finding it means that both are installed.
macro(quern_find_library name variable library package)
  find_library(${variable} ${library})
  mark_as_advanced(${variable})
  if(NOT ${variable})
    list(APPEND quern_missing ${package})
  elseif(NOT TARGET quern::${name})
    add_library(quern::${name} UNKNOWN IMPORTED)
    set_target_properties(quern::${name} PROPERTIES IMPORTED_LOCATION ${${variable}})
  endif()
endmacro()
quern_find_library(hwy HWY_LIBRARY hwy libhwy-dev)
quern_find_library(lz4 LZ4_LIBRARY lz4 liblz4-dev)
quern_find_library(utf8proc UTF8PROC_LIBRARY utf8proc libutf8proc-dev)
quern_find_library(zstd ZSTD_LIBRARY zstd libzstd-dev)
