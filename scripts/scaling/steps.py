"""Training steps on W threads: the queue, passes with tickets, join, update. Times in seconds.

The order of micro-batches is fixed at every ticket, so a micro-batch depends only on earlier ones: processing them in
order, with the times at which every ticket was passed on, is an exact simulation.
"""

import dataclasses
import heapq
import random

from scaling.model import PACK_FROM, ParameterLayout
from scaling.program import Program, part


@dataclasses.dataclass(frozen=True)
class Options:
    """Parameters of the machine and the engine; the command line documents them."""
    divisor: int = 4
    segment_floats: int = 64 << 10
    gap_us: float = 50.0
    submit_us: float = 1.0
    pass_us: float = 0.2
    spin_us: float = 20.0
    wake_us: float = 5.0
    meet_us: float = 0.5
    meet_member_us: float = 0.05
    socket_gbs: float = 250.0
    l2_mib: float = 2.0
    l3_mib: float = 260.0
    piece_gbs: float = 48.0
    jitter: float = 0.03
    steps: int = 2


@dataclasses.dataclass
class Times:
    """Totals over all steps and threads: busy + tickets + team + queue + gap = threads x seconds."""
    seconds: float = 0.0
    busy: float = 0.0
    tickets: float = 0.0
    team: float = 0.0
    queue: float = 0.0
    gap: float = 0.0
    passes: float = 0.0  # seconds from the start of the first micro-batch to the end of the last
    update: float = 0.0  # seconds of join and update
    bandwidth: float = 0.0  # part of busy: seconds added by the socket's bandwidth limit


class Engine:
    def __init__(self, model, rates, threads, options):
        self.model, self.rates, self.threads, self.options = model, rates, threads, options
        self.layout = ParameterLayout(model, options.segment_floats)
        self.micro_batches = model.micro_batches
        self.teams = max(1, min(threads, self.micro_batches))
        sizes = [end - begin for begin, end in (part(threads, i, self.teams) for i in range(self.teams))]
        self.sizes = sizes
        alone = max(sizes) == 1
        self.programs = {}
        for size in set(sizes):
            for last in (False, True):
                program = Program(model, self.layout, rates, options, size, self.teams, last)
                self.programs[size, last] = program.of_one_ticket_each() if alone else program
        self.packed = self.micro_batches >= PACK_FROM
        # Weights, gradient, two moments, and the copies packed for forward and backward.
        self.state_bytes = self.layout.size * (16 + (8 if self.packed else 0))
        self.cached = self.state_bytes <= options.l3_mib * 2**20

    def run(self):
        times = Times()
        for step in range(self.options.steps):
            self._step(times, random.Random(step))
        return times

    def _step(self, times, noise):
        gap = self.options.gap_us * 1e-6
        times.gap += gap * self.threads
        end = self._passes(times, noise)
        times.passes += end
        update = self._join(times) + self._update(times)
        times.update += update
        times.seconds += gap + end + update

    def passes(self, noise):
        """For the simulation of ranks: (when the last micro-batch is done, when each segment is complete)."""
        tickets = [0.0] * (len(self.layout.segments) + 1)
        end = self._passes(Times(), noise, tickets)
        # Only the first segment of a piece has a ticket (Program.of_one_ticket_each), and a bias none of its own.
        for i in range(1, len(self.layout.segments)):
            tickets[i] = tickets[i] or tickets[i - 1]
        return end, tickets[:-1]

    def join(self):
        """Seconds of the join."""
        return self._join(Times())

    def _passes(self, times, noise, tickets=None):
        """Returns the time at which the last micro-batch is done; the step begins at 0."""
        options = self.options
        tickets = tickets or [0.0] * (len(self.layout.segments) + 1)
        free = [(0.0, team) for team in range(self.teams)]  # a heap
        finished = [0.0] * self.teams
        busy = times.busy
        for i in range(self.micro_batches):
            at, team = heapq.heappop(free)
            fed = (i + 1) * options.submit_us * 1e-6
            start = max(at, fed)
            size = self.sizes[team]
            times.queue += (start - at) * size
            program = self.programs[size, i + 1 == self.micro_batches]
            slow = 1 + noise.uniform(-options.jitter, options.jitter)
            done = (self._alone if size == 1 else self._together)(program, start, slow, tickets, times)
            finished[team] = done
            heapq.heappush(free, (done, team))
        end = max(finished)
        times.queue += sum((end - done) * size for done, size in zip(finished, self.sizes))
        least = self._traffic() / (options.socket_gbs * 1e9)
        if least > end:  # all threads are limited by memory bandwidth
            times.busy += (least - end) * self.threads
            times.bandwidth += (least - end) * self.threads
            end = least
        assert times.busy >= busy
        return end

    def _traffic(self):
        """Memory traffic in bytes of all passes of a step: forward and backward read the matrices, the gradient is
        read and written. 0 if the model fits in the caches."""
        if self.cached:
            return 0.0
        return 16.0 * self.layout.size * self.micro_batches

    def _late(self, waited):
        """The delay between a signal and the waiting thread's reaction: spinning, or woken from sleep."""
        return (self.options.wake_us if waited > self.options.spin_us * 1e-6 else self.options.pass_us) * 1e-6

    def _alone(self, program, start, slow, tickets, times):
        t, busy, waited = start, 0.0, 0.0
        for enter, seconds, leave in program.stages[0][0]:
            if enter and tickets[enter[0]] > t:
                turn = max(tickets[s] for s in enter)
                turn += self._late(turn - t)
                waited += turn - t
                t = turn
            seconds *= slow
            busy += seconds
            t += seconds
            for s in leave:
                tickets[s] = t
        times.busy += busy
        times.tickets += waited
        return t

    def _together(self, program, start, slow, tickets, times):
        options, size = self.options, program.members
        now = [start] + [start + options.pass_us * 1e-6] * (size - 1)
        times.team += options.pass_us * 1e-6 * (size - 1)
        for stage in program.stages:
            for member, operations in enumerate(stage):
                t = now[member]
                for enter, seconds, leave in operations:
                    turn = max((tickets[s] for s in enter), default=0.0)
                    if turn > t:
                        turn += self._late(turn - t)
                        times.tickets += turn - t
                        t = turn
                    times.busy += seconds * slow
                    t += seconds * slow
                    for s in leave:
                        tickets[s] = t
                now[member] = t
            last = max(now)
            sleepers = any(last - t > options.spin_us * 1e-6 for t in now)
            met = last + (options.meet_us + options.meet_member_us * size + (options.wake_us if sleepers else 0)) * 1e-6
            times.team += sum(met - t for t in now)
            now = [met] * size
        return now[0]

    def _phase(self, times, pieces):
        """Pieces (seconds on one core, bytes of memory traffic) that the threads take from a counter."""
        options = self.options
        rate = options.socket_gbs * 1e9 / self.threads  # each thread's share of the bandwidth
        begin = [(i + 1) * options.submit_us * 1e-6 + options.wake_us * 1e-6 for i in range(self.teams)]
        ready = []  # the start time of each thread
        for team, size in enumerate(self.sizes):
            ready += [begin[team] if self.threads > 1 else 0.0] * size
        times.queue += sum(ready)
        heap = list(ready)
        heapq.heapify(heap)
        for seconds, traffic in pieces:
            taken = max(seconds, traffic / rate)
            times.busy += taken
            times.bandwidth += taken - seconds
            heapq.heapreplace(heap, heap[0] + taken)
        end = max(heap)
        times.queue += sum(end - t for t in heap)
        return end

    def _join(self, times):
        """Adds the input rows of the tokens that occurred to the table; then the norms of both tables."""
        model, pieces = self.model, []
        tokens = model.batch * model.context
        touched = 1 - (1 - 1 / model.vocabulary) ** tokens
        for floats, _ in self.layout.segments[:self.layout.joins]:
            count = floats * (4 + 16 * touched)
            pieces.append((self.rates.bytes(count), 0.0) if self.cached else (self.rates.memory(count), count))
        if len(pieces) > 4:
            return self._phase(times, pieces)
        seconds = sum(seconds for seconds, _ in pieces)
        times.busy += seconds
        times.queue += seconds * (self.threads - 1)
        return seconds

    def _update(self, times):
        return self._phase(times, [self.update_piece(floats, packed) for floats, packed in self.layout.segments])

    def update_piece(self, floats, packed, owned=True):
        """(seconds, bytes of memory traffic) of a segment. AdamW, unless another rank owns it: four reads and three
        writes. A packed copy: two writes, which first read the lines too."""
        packing = 16 if packed and self.packed else 0
        rate = self.rates.bytes if self.cached else self.rates.copied
        seconds = owned * floats * self.rates.adamw(self.cached) + rate(floats * packing)
        return seconds, 0.0 if self.cached else floats * (28.0 * owned + packing)


@dataclasses.dataclass(frozen=True)
class Result:
    threads: int
    teams: int
    micro_batches: int
    step_ms: float
    tokens_per_s: float
    speedup: float  # over one thread on the same batch
    utilisation: float
    ticket_wait: float
    team_wait: float
    queue_wait: float
    bandwidth: float  # fraction of the threads' time lost to the socket's bandwidth limit
    update: float  # fraction of the step's time spent in join and update


def simulate(model, rates, threads, options):
    times = Engine(model, rates, threads, options).run()
    one = times if threads == 1 else Engine(model, rates, 1, options).run()
    total = times.seconds * threads
    step = times.seconds / options.steps
    return Result(threads=threads,
                  teams=max(1, min(threads, model.micro_batches)),
                  micro_batches=model.micro_batches,
                  step_ms=step * 1e3,
                  tokens_per_s=model.batch * model.context / step,
                  speedup=one.seconds / times.seconds,
                  utilisation=times.busy / total,
                  ticket_wait=times.tickets / total,
                  team_wait=times.team / total,
                  queue_wait=(times.queue + times.gap) / total,
                  bandwidth=times.bandwidth / total,
                  update=times.update / times.seconds)
