#!/usr/bin/env python3
"""Runs the kernel tests once per vector target of this CPU, forced with QUERN_TARGET; prints one line per target.

Usage: scripts/test_targets.py build/release
"""

import os
import pathlib
import subprocess
import sys
import time


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    build = pathlib.Path(sys.argv[1])
    quern, tests = build / "quern", build / "tests" / "kernels_test"
    targets = subprocess.run([quern, "info", "--targets"], capture_output=True, text=True, check=True).stdout.split()
    failed = 0
    for target in targets:
        start = time.monotonic()
        run = subprocess.run([tests, "--gtest_brief=1"], capture_output=True, text=True,
                             env={**os.environ, "QUERN_TARGET": target})
        print(f"{target:<8} {'passed' if run.returncode == 0 else 'FAILED'}  {time.monotonic() - start:.1f} s", flush=True)
        if run.returncode != 0:
            failed += 1
            print(run.stdout + run.stderr)
    return 1 if failed or not targets else 0


if __name__ == "__main__":
    sys.exit(main())
