# The program `quern`, and the benchmarks that it runs.
file(GLOB_RECURSE QUERN_BENCH_SOURCES CONFIGURE_DEPENDS benchmarks/*.cc)
list(FILTER QUERN_BENCH_SOURCES EXCLUDE REGEX "benchmarks/peers/")
add_library(quern_bench STATIC ${QUERN_BENCH_SOURCES})
target_include_directories(quern_bench PUBLIC ${PROJECT_SOURCE_DIR})
target_link_libraries(quern_bench PUBLIC quern_options quern_lib nlohmann_json::nlohmann_json ${CMAKE_DL_LIBS})
quern_precompile(quern_bench cmake/precompiled/library.h)

file(GLOB_RECURSE QUERN_CLI_SOURCES CONFIGURE_DEPENDS src/cli/*.cc)
add_executable(quern_program ${QUERN_CLI_SOURCES})
set_target_properties(quern_program PROPERTIES OUTPUT_NAME quern)
target_link_libraries(quern_program PRIVATE quern_bench CLI11::CLI11)
quern_precompile(quern_program cmake/precompiled/program.h)
# The program parses flags and prints; the work is in the libraries. CLI11 at -O2 under the address sanitizer takes 60 s
# and 0.9 GB a file, at -O0 9 s.
if(QUERN_SANITIZE)
  target_compile_options(quern_program PRIVATE -O0)
else()
  target_compile_options(quern_program PRIVATE -O1)
endif()

# `quern --version` and every --json name the commit they were built from, so it is looked up at each build.
set(QUERN_GENERATED ${PROJECT_BINARY_DIR}/generated)
add_custom_target(quern_commit BYPRODUCTS ${QUERN_GENERATED}/commit.h COMMAND ${CMAKE_COMMAND}
  -D SOURCE_DIR=${PROJECT_SOURCE_DIR} -D OUTPUT=${QUERN_GENERATED}/commit.h -P ${PROJECT_SOURCE_DIR}/cmake/commit.cmake)
add_dependencies(quern_program quern_commit)
target_include_directories(quern_program PRIVATE ${QUERN_GENERATED})
