# What makes the build cheaper without changing what is built.

# A compiler cache, when one is installed and nobody chose otherwise.
find_program(QUERN_CCACHE ccache)
if(QUERN_CCACHE AND NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER AND PROJECT_IS_TOP_LEVEL)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${QUERN_CCACHE})
endif()
if(CMAKE_CXX_COMPILER_LAUNCHER MATCHES "ccache" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # Lets ccache hash a precompiled header instead of its text. To cache such files it also wants
  # `sloppiness = pch_defines,time_macros` in its configuration; without, it calls the compiler.
  add_compile_options(-fpch-preprocess)
endif()

# Every file of `target` starts with `header` precompiled. Files still include all that they use: the preset `dev`, which
# `make lint` checks, builds without it.
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
