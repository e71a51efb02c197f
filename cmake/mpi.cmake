# quern-mpi.so, next to the program, which loads it when it was started by mpirun or srun. Without MPI on this machine the
# program is built without it.
option(QUERN_BUILD_MPI "Build the module for MPI, if MPI is installed" ON)
if(NOT QUERN_BUILD_MPI)
  return()
endif()
set(MPI_CXX_SKIP_MPICXX ON)  # the C interface; Open MPI 5 has no other
find_package(MPI QUIET COMPONENTS CXX)
if(NOT MPI_CXX_FOUND)
  message(STATUS "quern: no MPI found; runs on several machines need libopenmpi-dev")
  return()
endif()
add_library(quern_mpi MODULE src/dist/mpi/mpi_ranks.cc)
set_target_properties(quern_mpi PROPERTIES PREFIX "" OUTPUT_NAME quern-mpi)
target_link_libraries(quern_mpi PRIVATE quern_options MPI::MPI_CXX)
add_dependencies(quern_program quern_mpi)
