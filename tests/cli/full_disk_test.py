"""Full or read-only disks: a one-line error, no saved data lost, and a run that can be resumed."""

import os
import resource
import shutil
import subprocess
import sys

import program
from program import SMALL, TEXT


class FullDisk(program.ProgramTest):
    SETTINGS = (*SMALL, "--set", "checkpoint.interval=2", "--set", "checkpoint.keep=100", "--set",
                "optimizer.schedule=constant")

    def refused(self, says, run="disk/run", **options):
        """Resume cannot save; returns what the checkpoints hold, which has not changed."""
        checkpoints = self.folder / run / "checkpoints"
        before = program.contents(checkpoints)
        self.fails("train", "--run", self.path(run), "--resume", says=says, **options)
        self.assertEqual(program.contents(checkpoints), before)
        self.assertEqual([name for name in os.listdir(checkpoints) if name.startswith(".")], [])
        return before

    def remount(self, options):
        subprocess.run(["mount", "-o", "remount," + options, self.path("disk")], check=True)

    def small_disk(self, size):
        if "QUERN_TEST_CAN_MOUNT" not in os.environ:
            self.skipTest("mounting a small disk takes more rights")
        (self.folder / "disk").mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "quern-test", self.path("disk")], check=True)
        self.addCleanup(subprocess.run, ["umount", self.path("disk")], check=True)

    def test_full_disk(self):
        self.train("whole", *self.SETTINGS[len(SMALL):], "--steps", "40")
        self.small_disk("1m")
        self.fails("train", *self.SETTINGS, "--steps", "40", "--run", self.path("disk/run"),
                   says=["/checkpoints/step-000000", "cannot write more than", "No space left on device"])
        before = self.refused(["/checkpoints/step-000000", "No space left on device"])
        self.assertGreaterEqual(len(before), 2 * 4)
        self.assertGreaterEqual(self.info("disk/run")["step"], 4)
        self.remount("size=64m")
        self.assertIn("resuming at step", self.resume("disk/run"))
        self.assertEqual(self.hash("disk/run"), self.hash("whole"))
        after = program.contents(self.folder / "disk/run/checkpoints")
        self.assertEqual({path: after[path] for path in before}, before)

    def test_no_room_for_the_first_checkpoint(self):
        self.small_disk("100k")
        self.fails("train", *self.SETTINGS, "--steps", "4", "--run", self.path("disk/run"),
                   says=["step-00000002", "No space left on device"])
        self.refused(["step-00000002", "No space left on device"])
        self.remount("size=64m")
        self.resume("disk/run")

    def test_a_start_that_failed_can_be_tried_again(self):
        self.train("whole", *self.SETTINGS[len(SMALL):], "--steps", "1")
        self.small_disk("20k")
        text = self.write("more.txt", "the small dog ran home. " * 400)
        start = ("train", "--from", self.path("whole"), text, "--steps", "2", "--run", self.path("disk/run"))
        self.fails(*start, says=["No space left on device"])
        self.assertEqual(os.listdir(self.folder / "disk/run"), [])
        self.remount("size=64m")
        self.works(*start)

    def test_tokens_do_not_fit(self):
        self.small_disk("20k")
        text = self.write("text.txt", TEXT * 20)
        self.fails("tokenize", text, "--kind", "char", "--out", self.path("disk/tokens"),
                   says=["tokens.bin", "No space left on device"])
        self.assertFalse((self.folder / "disk/tokens/tokens.bin").exists())

    def test_read_only_disk(self):
        self.small_disk("64m")
        self.works("train", *self.SETTINGS, "--steps", "4", "--run", self.path("disk/run"))
        self.set_in_config("disk/run", "steps", 6)
        self.remount("ro")
        self.refused(["disk/run", "Read-only file system"])
        new, says = self.path("disk/new"), ["disk/new", "Read-only file system"]
        self.fails("train", *SMALL, "--steps", "1", "--run", new, says=says)
        self.fails("tokenize", self.write("text.txt", TEXT), "--out", new, says=says)
        self.assertIn("step", self.works("eval", "--run", self.path("disk/run")))
        self.remount("rw")
        self.assertIn("done: 6 steps", self.resume("disk/run"))

    def test_file_size_limit(self):
        def limit(size):
            return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

        self.train("whole", *self.SETTINGS[len(SMALL):], "--steps", "8")
        self.train("run", *self.SETTINGS[len(SMALL):], "--steps", "4")
        self.set_in_config("run", "steps", 8)
        for size, file in ((100000, "optimizer.safetensors"), (50000, "model.safetensors")):
            self.refused([f"/checkpoints/step-00000006/{file}: cannot write more than {size} bytes: File too large"],
                         run="run", preexec_fn=limit(size))
        self.resume("run")
        self.assertEqual(self.hash("run"), self.hash("whole"))
        text = self.write("text.txt", TEXT)
        self.fails("tokenize", text, "--kind", "char", "--out", self.path("tokens"),
                   says=["tokens.bin", "File too large"], preexec_fn=limit(5000))

    def test_folder_that_is_a_file(self):
        self.write("file", "text")
        for run, found in (("file", "expected the folder of a run, found a file"), ("file/run", "ot a directory")):
            self.fails("train", *SMALL, "--steps", "1", "--run", self.path(run), says=["/file", found])
        self.assertEqual((self.folder / "file").read_text(), "text")

    def test_folder_without_write_permission(self):
        folder = self.folder / "mine"
        folder.mkdir()
        folder.chmod(0o555)
        self.folder.chmod(0o755)
        somebody = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}
        try:
            subprocess.run([program.QUERN, "--version"], capture_output=True, check=True, **somebody)
        except (PermissionError, subprocess.CalledProcessError):  # a build below a folder of one's own, such as /root
            self.skipTest("the program cannot be started by another user")
        self.fails("train", *SMALL, "--steps", "1", "--run", str(folder / "run"),
                   says=["mine/run", "Permission denied"], **somebody)


def with_own_mounts():
    """Starts this script again in a mount namespace of its own, if the system permits it."""
    own = ["unshare", "--mount", "--propagation", "private"]
    if os.geteuid() != 0:
        own.append("--map-root-user")
    if "QUERN_TEST_CAN_MOUNT" in os.environ or not shutil.which("unshare"):
        return
    probe = ["sh", "-c", "mount -t tmpfs none /mnt && mount -o remount,size=1m /mnt && umount /mnt"]
    if subprocess.run([*own, *probe], capture_output=True).returncode == 0:
        os.environ["QUERN_TEST_CAN_MOUNT"] = "1"
        os.execvp(own[0], [*own, sys.executable, *sys.argv])


if __name__ == "__main__":
    with_own_mounts()
    program.main()
