# The programs `quern` and `quern-bench`; `quern bench` starts the second, which is next to it.
file(GLOB QUERN_CLI_SOURCES CONFIGURE_DEPENDS src/cli/*.cc)
list(FILTER QUERN_CLI_SOURCES EXCLUDE REGEX "src/cli/main.cc")
add_library(quern_cli OBJECT ${QUERN_CLI_SOURCES})
target_link_libraries(quern_cli PRIVATE quern_options CLI11::CLI11)
quern_precompile(quern_cli cmake/precompiled/program.h)
# The programs parse flags and print; the work is in the library. CLI11 at -O2 under the address sanitizer takes 60 s and
# 0.9 GB, at -O0 9 s.
if(QUERN_SANITIZE)
  set(QUERN_PROGRAM_OPTIMIZATION -O0)
else()
  set(QUERN_PROGRAM_OPTIMIZATION -O1)
endif()
target_compile_options(quern_cli PRIVATE ${QUERN_PROGRAM_OPTIMIZATION})

# `quern --version` and every --json output contain the commit they were built from, so it is looked up at each build.
set(QUERN_GENERATED ${PROJECT_BINARY_DIR}/generated)
add_custom_target(quern_commit BYPRODUCTS ${QUERN_GENERATED}/commit.h COMMAND ${CMAKE_COMMAND}
  -D SOURCE_DIR=${PROJECT_SOURCE_DIR} -D OUTPUT=${QUERN_GENERATED}/commit.h -P ${PROJECT_SOURCE_DIR}/cmake/commit.cmake)
add_dependencies(quern_cli quern_commit)
target_include_directories(quern_cli PRIVATE ${QUERN_GENERATED})

add_executable(quern_program src/cli/main.cc $<TARGET_OBJECTS:quern_cli> $<TARGET_OBJECTS:quern_core>)
set_target_properties(quern_program PROPERTIES OUTPUT_NAME quern)
target_link_libraries(quern_program PRIVATE quern_options ${QUERN_LINKED})

include(cmake/mpi.cmake)

file(GLOB QUERN_BENCH_SOURCES CONFIGURE_DEPENDS benchmarks/*.cc)
add_library(quern_bench STATIC ${QUERN_BENCH_SOURCES})
target_include_directories(quern_bench PUBLIC ${PROJECT_SOURCE_DIR})
target_link_libraries(quern_bench PUBLIC quern_options quern_lib ${CMAKE_DL_LIBS})
quern_precompile_as(quern_bench quern_core)

file(GLOB QUERN_BENCH_PROGRAM_SOURCES CONFIGURE_DEPENDS benchmarks/program/*.cc)
add_executable(quern_bench_program ${QUERN_BENCH_PROGRAM_SOURCES} $<TARGET_OBJECTS:quern_cli>)
set_target_properties(quern_bench_program PROPERTIES OUTPUT_NAME quern-bench)
target_link_libraries(quern_bench_program PRIVATE quern_bench)
target_compile_options(quern_bench_program PRIVATE ${QUERN_PROGRAM_OPTIMIZATION})
