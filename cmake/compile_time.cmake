# Settings that make the build faster without changing its result.

# A compiler cache, if one is installed and no launcher was set.
find_program(QUERN_CCACHE ccache)
if(QUERN_CCACHE AND NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER AND PROJECT_IS_TOP_LEVEL)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${QUERN_CCACHE})
endif()
if(CMAKE_CXX_COMPILER_LAUNCHER MATCHES "ccache" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # Lets ccache hash a precompiled header instead of its text. To cache such files it also needs
  # `sloppiness = pch_defines,time_macros` in its configuration; otherwise it calls the compiler.
  add_compile_options(-fpch-preprocess)
endif()

# Every file of `target` starts with the precompiled `header`. Files still include everything they use: the preset
# `dev`, which `make lint` checks, builds without precompiled headers.
function(quern_precompile target header)
  if(QUERN_PRECOMPILE)
    target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR})
    target_precompile_headers(${target} PRIVATE ${PROJECT_SOURCE_DIR}/${header})
  endif()
endfunction()

# The same with the precompiled header of `other`, which must be compiled with the same options.
function(quern_precompile_as target other)
  if(QUERN_PRECOMPILE)
    target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR})
    target_precompile_headers(${target} REUSE_FROM ${other})
  endif()
endfunction()
