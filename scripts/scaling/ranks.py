"""Steps of several ranks, each an engine of its own (steps.py), joined by a network. Times in seconds.

The exchange is that of train/rank_exchange.cc: segments of the gradient go to their owners during the backward pass,
then everyone gets norms and losses, then owners update their segments and send the weights to all others.

All ranks are taken to compute alike, so what happens at a rank happens at all of them at the same time, and not every
message has to be simulated. When a segment is complete, R - 1 ranks send it to its owner, whose link receives one byte
at a time. Each sends at 1 / (R - 1) of that rate, and to all owners at once, so its link never has to send faster than
the mean of what links receive: the owner's receiving link alone limits a segment. With weights it is the other way
round: the owner's sending link limits, and others receive the mean of what owners send. So a queue per owner is an
exact simulation of all links, if links are shared fairly.

A message has a latency of alpha. One of more than 64 KiB is announced, accepted, and then sent: three of them (the
rendezvous protocol of MPI). One thread of a rank does all communication and adds up what it receives; it takes turns
with the workers if the rank has no core to spare.

Not included: adding up the lanes of a rank, switches that cannot carry all links at once, and the first seconds of TCP.
"""

import dataclasses
import heapq
import math
import random

from scaling.program import part
from scaling.steps import Engine

RENDEZVOUS = 3           # latencies until a large message arrives
MAX_SLOTS = 8            # ExchangeSlots in train/rank_exchange.cc: segments that an owner receives at once,
SLOTS_BYTES = 64 << 20   # and their memory
GATHERS = 2              # losses, norms
OVERLAPS = ("both", "gradient", "none")


@dataclasses.dataclass(frozen=True)
class Network:
    """What joins the ranks; the command line documents it."""
    bandwidth: float = math.inf  # bytes/s that a rank can send, and receive at the same time
    alpha: float = 0.0           # seconds from a send to a receive
    copy: float = math.inf       # bytes/s that one core can send and receive at the same time
    message: float = 0.0         # seconds of a core to send or to receive a message
    poll: float = 0.0            # seconds until the thread that communicates sees a change
    watch: float = 0.0           # share of a core that this thread takes while messages are on their way


@dataclasses.dataclass(frozen=True)
class Setting:
    """How a step is divided."""
    ranks: int
    threads: int = 1          # of a rank
    cores: float = math.inf   # that a rank has: fewer than threads slow everything down
    lanes: int = 0            # 0: as many as a new run gets
    overlap: str = "both"     # of gradients with backward, and of weights with the update
    scale: float = 1.0        # measured time / simulated time of what a rank computes


@dataclasses.dataclass(frozen=True)
class Result:
    ranks: int
    step: float
    backward: float  # end of the passes and the join
    gradient: float  # end of the exchange of gradients and numbers
    sent: float      # bytes sent by a rank


def lane_nodes(lanes, ranks):
    """nn/lane_tree.h: for each rank, the number of nodes of the tree over all lanes that its lanes complete."""
    def count(begin, end, node):
        if begin >= node[1] or end <= node[0]:
            return 0
        if begin <= node[0] and node[1] <= end:
            return 1
        middle = node[0] + (1 << (node[1] - node[0] - 1).bit_length() - 1)
        return count(begin, end, (node[0], middle)) + count(begin, end, (middle, node[1]))
    return [count(*part(lanes, rank, ranks), (0, lanes)) for rank in range(ranks)]


def owners_of(segments, ranks):
    """Ownership in train/rank_exchange.cc: the owner of each segment; it is the rank that has least so far."""
    floats, owners = [(0, rank) for rank in range(ranks)], []
    for size, _ in segments:
        has, owner = floats[0]
        owners.append(owner)
        heapq.heapreplace(floats, (has + size, owner))
    return owners


class RankStep:
    """A step of all ranks, of which `model.batch` sequences are the whole."""

    def __init__(self, model, rates, options, setting, network):
        self.options, self.setting, self.network = options, setting, network
        ranks = setting.ranks
        lanes = setting.lanes or 1 << (ranks - 1).bit_length()
        # The rank with the most lanes is the one that all others wait for.
        busiest = max(end - begin for begin, end in (part(lanes, rank, ranks) for rank in range(ranks)))
        own = dataclasses.replace(model, batch=-(-model.batch * busiest // lanes))
        self.engine = Engine(own, rates, setting.threads, options)
        self.segments = self.engine.layout.segments
        self.add = rates.bytes if self.engine.cached else rates.memory  # of bytes, in seconds
        self.owners = owners_of(self.segments, ranks)
        self.nodes = sum(lane_nodes(lanes, ranks)) / ranks
        # What others send for each byte that this rank owns, and what it sends for each byte that it does not own.
        self.others = (ranks - 1) * self.nodes
        self.slow = max(1.0, setting.threads / setting.cores)
        # What each worker loses for a second of the thread that communicates.
        self.taking = 0.0 if setting.cores >= setting.threads + 1 else 1 / setting.threads
        self.batch = model.batch

    def run(self):
        complete, backward = self._complete_segments()
        gradient = backward
        if self.setting.ranks > 1:
            gradient, backward = self._exchange_gradient(complete, backward)
            gradient += self._exchange_numbers()
        end = gradient + (self._overlapped_update() if self.setting.overlap == "both" else self._update_then_send())
        floats = sum(size for size, _ in self.segments)
        sent = 4 * floats * (self.setting.ranks - 1) / self.setting.ranks * (self.nodes + 1)
        return Result(self.setting.ranks, end + self.options.gap_us * 1e-6, backward, gradient, sent)

    def _computing(self, seconds):
        return seconds * self.setting.scale * self.slow

    def _complete_segments(self):
        """(when this rank has added all of its lanes to each segment, when the last is done)"""
        passes, times = _passes(self.engine, self.options)
        # The workers of all ranks wait for the slowest one. A micro-batch deviates by a uniform distribution; the mean
        # of those that a thread computes is nearly normal, and its largest of R is about sqrt(2 ln R) deviations off.
        rounds = -(-self.engine.micro_batches // self.engine.teams)
        late = self.options.jitter / math.sqrt(3 * rounds) * math.sqrt(2 * math.log(self.setting.ranks))
        stretch = 1 + late
        complete = [self._computing(t * stretch) for t in times]
        join, joins = self.engine.join(), self.engine.layout.joins
        for i in range(joins):
            complete[i] = self._computing(passes * stretch + join * (i + 1) / joins)
        return complete, self._computing(passes * stretch + join)

    def _message_work(self, size, messages):
        """Seconds of the thread that communicates to send and to receive this many bytes and messages."""
        return (size / self.network.copy + 2 * messages * self.network.message) * self.slow

    def _exchange_gradient(self, complete, backward):
        """(when the last owner has the sum of its last segment, when this rank's workers are done)"""
        network, setting = self.network, self.setting
        largest = 4 * max(size for size, _ in self.segments) * self.others
        slots = int(min(MAX_SLOTS, max(1, SLOTS_BYTES // largest)))
        link = [0.0] * setting.ranks    # when each owner's link is free,
        thread = [0.0] * setting.ranks  # and its thread
        free = [[0.0] * slots for _ in range(setting.ranks)]  # when each of its slots is
        taken = 0.0  # from each worker, by the thread that communicates
        end, before = backward, math.inf
        for segment in sorted(range(len(self.segments)), key=complete.__getitem__):
            if setting.overlap != "none":  # as if messages were on their way from the first segment on
                taken += self.taking * network.watch * max(0.0, complete[segment] - before)
                before = complete[segment]
            at = backward if setting.overlap == "none" else complete[segment] + taken
            owner, size = self.owners[segment], 4 * self.segments[segment][0] * self.others
            work = self._message_work(size, self.others)
            adding = self._computing(self.add(3 * size))  # reads two, writes one
            announced = at + network.alpha + network.poll
            begin = max(announced, heapq.heappop(free[owner])) + (RENDEZVOUS - 1) * network.alpha
            begin = max(begin, link[owner])
            link[owner] = begin + size / network.bandwidth
            thread[owner] = max(max(thread[owner], begin) + work, link[owner]) + adding
            heapq.heappush(free[owner], thread[owner])
            if begin < backward + taken:
                taken += self.taking * (work + adding) / setting.ranks
            end = max(end, thread[owner])
        return max(end, backward + taken), backward + taken

    def _exchange_numbers(self):
        """Everyone sends to everyone: latency, and what the thread does for each of R - 1 messages, counts."""
        network, others = self.network, self.setting.ranks - 1
        size = 8 * (len(self.segments) + self.batch) / GATHERS * others / self.setting.ranks
        gather = network.alpha + network.poll + self._message_work(size, others) + size / network.bandwidth
        return GATHERS * gather

    def _pieces(self, rank):
        """What the workers do in an update: (own segments with AdamW and packing, all others with packing alone), each
        (seconds, segment)."""
        rate = self.options.socket_gbs * 1e9 / self.setting.threads
        own, foreign = [], []
        for index, (floats, packed) in enumerate(self.segments):
            seconds, traffic = self.engine.update_piece(floats, packed, owned=self.owners[index] == rank)
            pieces = own if self.owners[index] == rank else foreign
            pieces.append((self._computing(max(seconds, traffic / rate)), index))
        return own, foreign

    def _update_own(self, own):
        """When each own segment is done, in that order; the workers' times at the end, as a heap."""
        workers = [0.0 if self.setting.threads == 1 else (self.options.wake_us + self.options.submit_us) * 1e-6
                   ] * self.setting.threads
        done = []
        for seconds, index in own:
            done.append((workers[0] + seconds, index))
            heapq.heapreplace(workers, workers[0] + seconds)
        return sorted(done), workers

    def _send(self, done):
        """When each segment has arrived at all others, if the owner has updated it at these times. Every owner does the
        same at the same time, so this is also when a rank has received as many."""
        network, others = self.network, self.setting.ranks - 1
        link = thread = 0.0
        arrived = []
        for at, index in done:
            size = 4 * self.segments[index][0] * others
            begin = at + network.poll + (RENDEZVOUS - 1) * network.alpha
            link = max(link, begin) + size / network.bandwidth
            thread = max(thread, begin) + self._message_work(size, others)
            arrived.append(max(link, thread) + network.alpha)
        return arrived

    def _largest_owner(self):
        floats = [0] * self.setting.ranks
        for owner, (size, _) in zip(self.owners, self.segments):
            floats[owner] += size
        return max(range(self.setting.ranks), key=floats.__getitem__)

    def _overlapped_update(self):
        """Segments are sent as soon as they are updated, and packed as soon as they arrive."""
        own, foreign = self._pieces(self._largest_owner())
        done, workers = self._update_own(own)
        if not foreign:
            return max(workers)
        arrived = self._send(done)
        sent = 4 * sum(self.segments[index][0] for _, index in own) * (self.setting.ranks - 1)
        workers = [worker + self.taking * self._message_work(sent, 0) for worker in workers]
        # Each of this rank's segments arrives when one of every other rank does: foreign segments in equal groups.
        for i, (seconds, _) in enumerate(foreign):
            at = arrived[i * len(arrived) // len(foreign)]
            heapq.heapreplace(workers, max(workers[0], at) + seconds)
        return max(max(workers), arrived[-1])

    def _update_then_send(self):
        """Weights are sent when all are updated, and packed when all have arrived."""
        own, foreign = self._pieces(self._largest_owner())
        done, workers = self._update_own(own)
        if not foreign:
            return max(workers)
        end = self._send([(max(workers), index) for _, index in done])[-1]
        workers = [end] * self.setting.threads
        for seconds, _ in foreign:
            heapq.heapreplace(workers, workers[0] + seconds)
        return max(workers)


def _passes(engine, options):
    """(duration of all micro-batches, when each segment is complete). Of very many micro-batches, the first ones are
    simulated, and the others take as long as the second half of these."""
    simulated = min(engine.micro_batches, 16 * engine.teams)
    def passes_of(count):
        few = dataclasses.replace(engine.model, batch=count * engine.model.sequences)
        other = Engine(few, engine.rates, engine.threads, options)
        return other.passes(random.Random(0))
    end, times = passes_of(simulated)
    rest = engine.micro_batches - simulated
    if rest > 0:
        more = (end - passes_of(simulated // 2)[0]) / (simulated - simulated // 2) * rest
        end, times = end + more, [t + more for t in times]
    return end, times


@dataclasses.dataclass(frozen=True)
class Row:
    """A line of a table: the step, against one rank and against a network that costs nothing."""
    ranks: int
    tokens: int        # of a step
    step: float
    efficiency: float  # tokens/s of a rank, relative to those of one rank alone
    exposed: float     # share of the step that a network without cost would save
    sent: float        # bytes, by a rank


def step_of_one_rank(model, rates, options, setting):
    """(tokens, seconds), on as many cores as it has threads"""
    alone = dataclasses.replace(setting, ranks=1, cores=math.inf)
    step = RankStep(model, rates, options, alone, Network()).run().step
    return model.batch * model.context, step


def measured_scale(model, rates, options, setting, measured):
    """Setting.scale with which a step of one rank takes as long as measured; 1 if it was not."""
    if measured is None:
        return 1.0
    gap = options.gap_us * 1e-6
    return (measured - gap) / (step_of_one_rank(model, rates, options, setting)[1] - gap)


def simulate_ranks(model, rates, options, setting, network, alone):
    """`model.batch` is the whole step's; `alone` is that of one rank, which may have other tokens."""
    step = RankStep(model, rates, options, setting, network).run()
    free = RankStep(model, rates, options, setting, Network()).run()
    tokens = model.batch * model.context
    efficiency = tokens / step.step / setting.ranks / (alone[0] / alone[1])
    return Row(setting.ranks, tokens, step.step, efficiency, 1 - free.step / step.step, step.sent)
