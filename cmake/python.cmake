# The Python package quern: python/quern, and the extension quern/_quern from python/src, in build/PRESET/python.
set(QUERN_PYTHON /usr/bin/python3 CACHE FILEPATH "The Python interpreter to build the package for")
set(Python_EXECUTABLE ${QUERN_PYTHON})
find_package(Python 3.9 QUIET COMPONENTS Interpreter Development.Module)
find_package(pybind11 2.10 QUIET CONFIG)
if(NOT Python_Development.Module_FOUND OR NOT pybind11_FOUND)
  message(NOTICE "The Python package is not built: expected pybind11-dev and python3-dev for ${QUERN_PYTHON}; "
    "run scripts/install-deps, or set QUERN_BUILD_PYTHON=OFF")
  return()
endif()

set(QUERN_PYTHON_PATH ${PROJECT_BINARY_DIR}/python)
file(GLOB sources CONFIGURE_DEPENDS python/src/*.cc)
pybind11_add_module(quern_python MODULE NO_EXTRAS ${sources})
target_link_libraries(quern_python PRIVATE quern_options quern_lib)
target_compile_options(quern_python PRIVATE -O1)  # it converts arguments; the work is in the library
quern_precompile(quern_python cmake/precompiled/python.h)
set_target_properties(quern_python PROPERTIES OUTPUT_NAME _quern LIBRARY_OUTPUT_DIRECTORY ${QUERN_PYTHON_PATH}/quern)

file(GLOB files CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/python
  python/quern/*.py python/quern/*.pyi python/quern/py.typed)
foreach(file ${files})
  configure_file(python/${file} ${QUERN_PYTHON_PATH}/${file} COPYONLY)
endforeach()
