# quern_peers.so: the libraries that `quern bench` compares with. It is next to the program, which loads it at run time
# and reports if it is missing. Optimised in every preset and never sanitized: peers are always measured at their best.
find_path(QUERN_CBLAS_INCLUDE cblas.h PATH_SUFFIXES openblas openblas-pthread openblas64)
find_library(QUERN_OPENBLAS_LIBRARY openblas)
find_path(QUERN_CONCURRENTQUEUE_INCLUDE concurrentqueue/concurrentqueue.h)
# Not find_package(dnnl): Debian's configuration requires OpenCL's headers, which the CPU side does not use.
find_path(QUERN_DNNL_INCLUDE oneapi/dnnl/dnnl.hpp)
find_library(QUERN_DNNL_LIBRARY dnnl)
find_package(TBB QUIET)

set(missing "")
foreach(part
    "QUERN_CBLAS_INCLUDE libopenblas-dev" "QUERN_OPENBLAS_LIBRARY libopenblas-dev"
    "QUERN_CONCURRENTQUEUE_INCLUDE libconcurrentqueue-dev" "QUERN_DNNL_INCLUDE libdnnl-dev"
    "QUERN_DNNL_LIBRARY libdnnl-dev" "TBB_FOUND libtbb-dev")
  separate_arguments(part)
  list(GET part 0 variable)
  list(GET part 1 package)
  if(NOT ${variable})
    list(APPEND missing ${package})
  endif()
endforeach()
if(missing)
  list(REMOVE_DUPLICATES missing)
  list(JOIN missing ", " missing)
  message(STATUS "Peers for `quern bench`: not built, because these packages are not installed: ${missing}")
  return()
endif()

file(GLOB QUERN_PEER_SOURCES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/benchmarks/peers/*.cc)
add_library(quern_peers MODULE ${QUERN_PEER_SOURCES})
set_target_properties(quern_peers PROPERTIES PREFIX "" CXX_VISIBILITY_PRESET hidden)
target_include_directories(quern_peers PRIVATE ${PROJECT_SOURCE_DIR})
target_include_directories(quern_peers SYSTEM PRIVATE
  ${QUERN_CBLAS_INCLUDE} ${QUERN_CONCURRENTQUEUE_INCLUDE} ${QUERN_DNNL_INCLUDE})
target_compile_options(quern_peers PRIVATE -O3 -Wall -Wextra -Wconversion)
target_link_libraries(quern_peers PRIVATE ${QUERN_OPENBLAS_LIBRARY} ${QUERN_DNNL_LIBRARY} TBB::tbb Threads::Threads)
add_dependencies(quern_bench_program quern_peers)
