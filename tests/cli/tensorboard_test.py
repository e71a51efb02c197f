"""TensorBoard's event files, read as their format is defined: TFRecord frames, then protocol buffers."""

import json
import math
import signal
import struct
import time

import program

SETTINGS = ("--set", "log.tensorboard=true", "--set", "log.interval=2", "--set", "checkpoint.interval=4", "--set",
            "optimizer.schedule=constant", "--set", "train.validation_interval=4")
SCALARS = {"loss/train", "loss/validation", "optimizer/rate", "optimizer/gradient_norm", "speed/tokens_per_s",
           *(f"memory/{name}" for name in ("resident", "peak", "planned", "weights", "gradient", "moments", "batches",
                                           "arena", "pool"))}


def crc32c(data):
    value = 0xFFFFFFFF
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = (value >> 1) ^ (0x82F63B78 if value & 1 else 0)
    return value ^ 0xFFFFFFFF


def masked(data):
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def records(data):
    """length (8 bytes), masked crc of it (4), data, masked crc of that (4); little endian."""
    while data:
        length, crc = struct.unpack("<QI", data[:12])
        assert crc == masked(data[:8]), "the crc of a length"
        body, (crc,) = data[12:12 + length], struct.unpack("<I", data[12 + length:16 + length])
        assert crc == masked(body), "the crc of a record"
        yield body
        data = data[16 + length:]


def fields(data):
    """A protocol buffer as pairs of field number and raw value."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(data):
        number, kind = divmod(varint(), 8)
        if kind == 0:
            yield number, varint()
            continue
        size = {1: 8, 5: 4}.get(kind) or (varint() if kind == 2 else 1 / 0)
        assert at + size <= len(data)
        yield number, data[at:at + size]
        at += size


def real(raw):
    return struct.unpack("<d" if len(raw) == 8 else "<f", raw)[0]


def reals(raw):
    return list(struct.unpack(f"<{len(raw) // 8}d", raw))


def histogram(raw):
    names = {1: "min", 2: "max", 3: "num", 4: "sum", 5: "squares", 6: "limits", 7: "counts"}
    return {names[number]: reals(value) if number >= 6 else real(value) for number, value in fields(raw)}


def events(path):
    """Each as (step, what it is, {tag: scalar or histogram})."""
    for record in records(path.read_bytes()):
        event = dict(fields(record))
        assert 1.5e9 < real(event[1]) < 1e10, "seconds since 1970"
        values = {}
        for number, value in fields(event.get(5, b"")):
            assert number == 1
            value = dict(fields(value))
            values[value[1].decode()] = real(value[2]) if 2 in value else histogram(value[5])
        kind = "version" if 3 in event else "start" if 7 in event else "summary"
        if kind == "version":
            assert event[3] == b"brain.Event:2"
        if kind == "start":
            assert dict(fields(event[7])) == {1: 1}
        yield event.get(2, 0), kind, values


class TensorBoard(program.ProgramTest):
    def files(self, run):
        folder = self.folder / run / "tensorboard"
        return sorted(folder.iterdir()) if folder.exists() else []

    def lines(self, run):
        return [json.loads(line) for line in (self.folder / run / "metrics.jsonl").read_text().splitlines()]

    def test_the_values_match_metrics_jsonl(self):
        self.train("run", *SETTINGS, "--steps", "9")
        (file,) = self.files("run")
        found = list(events(file))
        self.assertEqual([(step, kind) for step, kind, _ in found[:2]], [(0, "version"), (1, "start")])
        self.assertEqual(set().union(*(values for _, _, values in found)), SCALARS)
        logged = {}
        for step, _, values in found:
            for tag, value in values.items():
                logged[step, tag] = value
        names = {"loss": "loss/train", "rate": "optimizer/rate", "gradient_norm": "optimizer/gradient_norm",
                 "tokens_per_s": "speed/tokens_per_s", "validation_loss": "loss/validation"}
        expected = {}
        for line in self.lines("run"):
            for field, tag in names.items():
                if field in line:
                    expected[line["step"], tag] = line[field]
            for field, size in line.get("memory", {}).items():
                expected[line["step"], f"memory/{field}"] = size / 2**20
        self.assertEqual(logged.keys(), expected.keys())
        self.assertEqual(sorted({step for step, tag in logged if tag == "loss/train"}), [2, 4, 6, 8, 9])
        for key, value in expected.items():
            self.assertEqual(logged[key], struct.unpack("<f", struct.pack("<f", value))[0], key)

    def test_the_health_of_each_tensor(self):
        self.train("run", *SETTINGS, "--set", "diagnostics.health_interval=3", "--steps", "7")
        health = {line["step"]: line["health"] for line in self.lines("run") if "health" in line}
        self.assertEqual(sorted(health), [3, 6])
        found = {(step, tag): value for step, _, values in events(self.files("run")[0]) for tag, value in values.items()}
        for step, tensors in health.items():
            for tensor, numbers in tensors.items():
                for tag, field in (("gradient_norm", "norm"), ("update_ratio", "update_ratio")):
                    self.assertEqual(found[step, f"{tag}/{tensor}"],
                                     struct.unpack("<f", struct.pack("<f", numbers[field]))[0])

    def test_histograms_of_the_weights(self):
        self.train("run", *SETTINGS, "--set", "log.histogram_interval=3", "--steps", "7")
        found = [(step, values) for step, _, values in events(self.files("run")[0])
                 if any(tag.startswith("weights/") for tag in values)]
        self.assertEqual([step for step, _ in found], [3, 6, 7])
        # The last is of the weights that were saved.
        model = (self.folder / "run/checkpoints/step-00000007/model.safetensors").read_bytes()
        (size,) = struct.unpack("<Q", model[:8])
        header = json.loads(model[8:8 + size])
        header.pop("__metadata__", None)
        self.assertEqual({"weights/" + name for name in header}, set(found[-1][1]))
        for name, info in header.items():
            begin, end = info["data_offsets"]
            values = struct.unpack(f"<{(end - begin) // 4}f", model[8 + size + begin:8 + size + end])
            histo = found[-1][1]["weights/" + name]
            self.assertEqual((histo["min"], histo["max"], histo["num"]), (min(values), max(values), len(values)))
            self.assertAlmostEqual(histo["sum"], math.fsum(values), places=6)
            self.assertAlmostEqual(histo["squares"], math.fsum(x * x for x in values), places=6)
            self.assertEqual(sum(histo["counts"]), len(values))
            self.assertEqual(histo["limits"], sorted(histo["limits"]))
            self.assertEqual(len(histo["limits"]), len(histo["counts"]))

    def test_a_resumed_run_continues_in_another_file(self):
        self.train("run", *SETTINGS, "--steps", "6")
        first = self.files("run")[0].read_bytes()
        self.resume("run")  # nothing to do: nothing is written
        self.assertEqual(len(self.files("run")), 1)
        self.set_in_config("run", "steps", 10)
        self.resume("run")
        one, two = self.files("run")  # in the order of their names, although both may be of one second
        self.assertEqual(one.read_bytes(), first)
        found = list(events(two))
        self.assertEqual([(step, kind) for step, kind, _ in found[:2]], [(0, "version"), (7, "start")])
        self.assertEqual([step for step, _, values in found if "loss/train" in values], [8, 10])

    def test_a_run_may_enable_it_later(self):
        self.train("run", "--steps", "4", "--set", "log.interval=1")
        self.assertEqual(self.files("run"), [])
        self.resume("run", "--steps", "7", "--set", "log.tensorboard=true")
        self.works("train", "--config", self.path("run/config.toml"), "--run", self.path("replayed"))
        for run in ("run", "replayed"):
            (file,) = self.files(run)
            found = list(events(file))
            self.assertEqual([step for step, kind, _ in found if kind == "start"], [5])
            self.assertEqual([step for step, _, values in found if "loss/train" in values], [5, 6, 7])

    def test_the_last_step_of_an_interrupted_process(self):
        """metrics.jsonl had it, TensorBoard did not."""
        process = program.start("train", *program.SMALL, "--run", self.path("run"), "--steps", "100000", "--set",
                                "log.tensorboard=true", "--set", "log.interval=50000", "--set",
                                "checkpoint.interval=1000000", "--set", "train.validation_interval=1000000", "--set",
                                "diagnostics.health_interval=3")
        self.addCleanup(process.kill)
        end = time.monotonic() + 60
        while len(self.lines("run") if (self.folder / "run/metrics.jsonl").exists() else []) < 3:
            self.assertLess(time.monotonic(), end)
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        self.assertEqual((process.communicate(timeout=program.TIMEOUT)[1], process.returncode), ("", 0))
        (line,) = [line for line in self.lines("run") if "loss" in line]
        found = [(step, values["loss/train"]) for step, _, values in events(self.files("run")[0])
                 if "loss/train" in values]
        self.assertEqual(found, [(line["step"], struct.unpack("<f", struct.pack("<f", line["loss"]))[0])])

    def test_the_weights_do_not_depend_on_it(self):
        self.train("plain", "--steps", "5", "--set", "optimizer.schedule=constant")
        self.train("shown", *SETTINGS, "--set", "log.histogram_interval=1", "--steps", "5")
        self.assertEqual(self.hash("plain"), self.hash("shown"))
        self.assertEqual(self.files("plain"), [])

    def test_bad_input_is_refused(self):
        self.fails("train", *program.SMALL, "--run", self.path("run"), "--set", "log.histogram_interval=5",
                   says=["log.histogram_interval: expected 0 without log.tensorboard", "found 5"])
        self.train("run", *SETTINGS, "--steps", "2")
        self.set_in_config("run", "steps", 4)
        (self.files("run")[0]).unlink()
        (self.folder / "run/tensorboard").rmdir()
        self.write("run/tensorboard", "a file")
        self.fails("train", "--run", self.path("run"), "--resume", says=["[tensorboard]", "run/tensorboard"])


if __name__ == "__main__":
    program.main()
