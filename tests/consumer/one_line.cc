#include <quern/error.h>
#include <quern/train.h>

#include <cstdio>

int main() {
  try {
    quern::preset_config("huge");
  } catch (const quern::Error& error) {
    std::puts(error.what());
  }
}
