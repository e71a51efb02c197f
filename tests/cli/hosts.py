"""Two hosts on one machine: network namespaces with host names of their own, joined by a link with rate and latency.

Needs root, network namespaces and TUN devices; DELAYED_LINK names the program that is the link (delayed_link.cc).
All processes on the hosts are in one more namespace, whose first process reads a pipe from the test: however the test
ends, that process does, and the kernel ends the others with it.
"""

import contextlib
import json
import os
import shlex
import shutil
import subprocess

DEVICE = "link0"
ADDRESSES = ("10.77.0.1", "10.77.0.2")  # nobody else is in these namespaces
MTU = 65500
FIRST = ("unshare", "--pid", "--fork")  # before the command of a process that ends all others with it


def missing():
    """Why there can be no hosts, or None."""
    if shutil.which("ip") is None:
        return "the program ip is not installed (iproute2)"
    if not os.path.exists("/dev/net/tun"):
        return "there are no TUN devices (/dev/net/tun)"
    probe = subprocess.run([*FIRST, *_new_host("quern-probe", f"ip tuntap add {DEVICE} mode tun")], capture_output=True,
                           text=True)
    return None if probe.returncode == 0 else "namespaces or TUN devices are not allowed: " + probe.stderr.strip()


class TwoHosts:
    """For a `with` statement. The rate is in bit/s and the delay in seconds, each way; `folder` is for a script."""

    def __init__(self, folder, rate, delay):
        self._rate, self._delay = rate, delay
        self._agent = os.path.join(folder, "remote-shell")
        self._processes = contextlib.ExitStack()

    def __enter__(self):
        with contextlib.ExitStack() as stack:  # undoes what was done if something fails
            stay = "ip link set lo up && read -r id rest < /proc/self/stat && echo $id && exec cat"
            first = int(_start(stack, [*FIRST, *_new_host("quern-host-1", stay)]))
            second = int(_start(stack, [*_on(first, "pid"), *_new_host("quern-host-2", stay)]))
            self._hosts = first, second
            ends = (word for host in self._hosts for word in (f"/proc/{host}/ns/net", DEVICE))
            _start(stack, [os.environ["DELAYED_LINK"], *ends, str(self._rate / 1e6), str(self._delay * 1e6)])
            for host, address in zip(self._hosts, ADDRESSES):
                _run(*_on(host), "ip", "address", "add", address + "/30", "dev", DEVICE)
                _run(*_on(host), "ip", "link", "set", DEVICE, "mtu", str(MTU), "up")
            with open(self._agent, "w") as file:  # what mpirun calls instead of ssh, with a host and a command
                file.write(f'shift\nexec {shlex.join(_on(self._hosts[1]))} sh -c "$*"\n')
            self._processes = stack.pop_all()
        return self

    def __exit__(self, *_):
        self._processes.close()

    def mpirun(self, *command):
        """The command line that starts a rank on each host. Open MPI finds out by itself that only the link joins
        them."""
        return [*_on(self._hosts[0], "pid", "net", "uts"), "mpirun", "-n", "2", "--host", ",".join(ADDRESSES),
                "--mca", "plm_rsh_agent", "sh " + self._agent, "--mca", "oob_tcp_if_include", DEVICE,
                "--mca", "btl_tcp_if_include", DEVICE, *map(str, command)]

    def bytes_sent(self):
        """By each host so far."""
        statistics = [_run(*_on(host), "ip", "-json", "-statistics", "link", "show", DEVICE) for host in self._hosts]
        return [json.loads(output)[0]["stats64"]["tx"]["bytes"] for output in statistics]


def _new_host(name, script):
    return ["unshare", "--net", "--uts", "sh", "-c", f"hostname {name} && {script}"]


def _on(host, *namespaces):
    """The beginning of a command that runs on a host, which is the id of its process."""
    return ["nsenter", "--target", str(host), *("--" + name for name in namespaces or ("net", "uts"))]


def _start(stack, command):
    """Starts a process that ends with its standard input; returns the line that it prints when it is ready."""
    process = stack.enter_context(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
    line = process.stdout.readline()
    if not line:
        raise RuntimeError(f"{command[0]} failed")
    return line


def _run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout
