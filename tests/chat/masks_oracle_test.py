"""Which tokens of a conversation are trained, compared with what each family of models must say.

The expected marks are written down from the format of each family, message by message: where a turn begins, what its
content becomes, which token ends it. Jinja2 confirms that this is the text of the family's template. MARKS_TOOL names
the program to test (marks_tool.cc).
"""

import json
import os
import pathlib
import random
import re
import subprocess
import tempfile
import unittest

import jinja2
import jinja2.sandbox

MARKS_TOOL = os.environ["MARKS_TOOL"]
TEMPLATES = pathlib.Path(__file__).parent / "templates"
CONVERSATIONS = 1000

WORDS = ("yes", "no", "a", "the model", "12", "3.5", "naïve", "日本語", "🙂", "e\u0301", "مرحبا", "{{ x }}", "{% if %}",
         "\t", "<b>", "</", "\"quoted\"", "\\n", "'", "\u00a0", "\u2028", "  ", "#", "assistant", "user\n")
EDGES = ("", "", "", "\n", "\n\n", " ", "\t", "\r\n", "<|im_end|>", "<|im_start|>assistant\n", "</s>", "<|eot_id|>",
         "<|", "<|endoftext|>", "<|assistant|>", "<tool_call>", "</tool_call>\n", "<|im_end|>\n", "system")


# ---- A tokenizer: bytes, and the special tokens of a family ----

def byte_alphabet():
    """The character that stands for each byte in the vocabulary of a byte-level tokenizer."""
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    characters = {byte: chr(byte) for byte in shown}
    hidden = [byte for byte in range(256) if byte not in characters]
    return {**characters, **{byte: chr(256 + i) for i, byte in enumerate(hidden)}}


class ByteTokenizer:
    def __init__(self, special):
        self.special = {token: 256 + i for i, token in enumerate(special)}
        self.pattern = re.compile("(" + "|".join(re.escape(t) for t in sorted(special, key=len, reverse=True)) + ")")

    def encode(self, text):
        ids = []
        for piece in self.pattern.split(text):
            ids += [self.special[piece]] if piece in self.special else list(piece.encode())
        return ids

    def json(self):
        level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
        added = [{"id": number, "content": token, "single_word": False, "lstrip": False, "rstrip": False,
                  "normalized": False, "special": not token.startswith(("<think", "</think", "<tool", "</tool"))}
                 for token, number in self.special.items()]
        model = {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
                 "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
                 "vocab": {character: byte for byte, character in byte_alphabet().items()}, "merges": []}
        return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "normalizer": None,
                "pre_tokenizer": level, "post_processor": None, "decoder": level, "model": model}


def compiled(text):
    """A chat template with the settings of transformers, whose tag for what is generated writes nothing."""
    text = re.sub("{% (end)?generation %}", "", text)
    def fail(message):
        raise jinja2.TemplateError(message)
    environment = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"])
    environment.filters["tojson"] = lambda value, **_: json.dumps(value, ensure_ascii=False)
    environment.globals["raise_exception"] = fail
    return environment.from_string(text)


# ---- Families: what each writes, as (text, trained) spans ----

class Family:
    special = ()
    bos = eos = None
    built_in = False

    def __init__(self):
        self.text = (TEMPLATES / f"{self.template}.jinja").read_text(encoding="utf-8")
        self.compiled = compiled(self.text)
        self.tokenizer = ByteTokenizer(self.special)

    def render(self, messages, tools=None, add_generation_prompt=False):
        tokens = {name: token for name, token in (("bos_token", self.bos), ("eos_token", self.eos)) if token}
        return self.compiled.render(**tokens, messages=messages, tools=tools,
                                    add_generation_prompt=add_generation_prompt)

    def head(self, messages, tools):
        """What comes before the first message that is not the system's."""
        mark = "the first question"
        system = [m for m in messages[:1] if m["role"] == "system"]
        text = self.render(system + [{"role": "user", "content": mark}], tools)
        return text[:text.rindex(self.opening("user") + mark)]

    def tail(self):
        """What follows the token that ends a turn."""
        return "\n"

    def shown(self, messages, i, last):
        """The text of message i, as (opening, said), in a conversation whose last message is `last`."""
        return self.opening(messages[i]["role"]), messages[i]["content"] + self.end

    def sequences(self, messages, tools):
        """The expected sequences: for each, its spans."""
        trained = [i for i, m in enumerate(messages) if m["role"] == "assistant" and m.get("train", True)]
        if not trained:
            return []
        if all(self.shown(messages, i, i) == self.shown(messages, i, trained[-1]) for i in trained):
            return [self.spans(messages, tools, trained[-1], trained)]
        return [self.spans(messages, tools, i, [i]) for i in trained]

    def spans(self, messages, tools, last, trained):
        spans = [(self.head(messages, tools), False)]
        for i in range(1 if messages[0]["role"] == "system" else 0, last + 1):
            opening, said = self.shown(messages, i, last)
            spans += [(opening, False), (said, i in trained), (self.tail() if i < last else "", False)]
        return spans

    def conversation(self, rng):
        messages = [{"role": "system", "content": content(rng)}] if rng.random() < 0.5 else []
        for _ in range(rng.randint(1, 4)):
            messages.append({"role": "user", "content": content(rng)})
            messages += self.answer(rng)
        if rng.random() < 0.15:
            messages.append({"role": "user", "content": content(rng)})
        for message in messages:
            if message["role"] == "assistant" and rng.random() < 0.2:
                message["train"] = False
        return messages, None

    def answer(self, rng):
        return [{"role": "assistant", "content": content(rng)}]


class SmolLm2(Family):
    template = "smollm2"
    special = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
    end = "<|im_end|>"

    def opening(self, role):
        return f"<|im_start|>{role}\n"


class Chatml(SmolLm2):
    """The template that Quern has built in, compared with a file that writes the same."""
    template = "chatml"
    built_in = True


class Zephyr(Family):
    template = "zephyr"
    special = ("<unk>", "<s>", "</s>")
    bos, eos = "<s>", "</s>"
    end = "</s>"

    def opening(self, role):
        return f"<|{role}|>\n"


class Llama3(Family):
    template = "llama3"
    special = ("<|begin_of_text|>", "<|end_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>")
    bos, eos = "<|begin_of_text|>", "<|eot_id|>"
    end = "<|eot_id|>"

    def opening(self, role):
        return f"<|start_header_id|>{role}<|end_header_id|>\n\n"

    def tail(self):
        return ""

    def shown(self, messages, i, last):
        return self.opening(messages[i]["role"]), messages[i]["content"].strip() + self.end


class Qwen25(SmolLm2):
    template = "qwen2_5"
    special = SmolLm2.special + ("<tool_call>", "</tool_call>")

    def calls(self, message, begins):
        """Tool calls, each on lines of its own; `begins` if nothing is said before them."""
        text = "".join("\n<tool_call>\n" + json.dumps(call["function"], ensure_ascii=False) + "\n</tool_call>"
                       for call in message.get("tool_calls", ()))
        return text.removeprefix("\n") if begins else text

    def shown(self, messages, i, last):
        message = messages[i]
        if message["role"] == "tool":
            return self.shown_result(messages, i)
        said = message.get("content") or ""
        return self.opening(message["role"]), said + self.calls(message, said == "") + self.end

    def shown_result(self, messages, i):
        """Results of consecutive calls share a turn of the user."""
        first = messages[i - 1]["role"] != "tool"
        final = i + 1 == len(messages) or messages[i + 1]["role"] != "tool"
        said = f"\n<tool_response>\n{messages[i]['content']}\n</tool_response>"
        return "<|im_start|>user" if first else "", said + (self.end if final else "")

    def spans(self, messages, tools, last, trained):
        spans = [(self.head(messages, tools), False)]
        for i in range(1 if messages[0]["role"] == "system" else 0, last + 1):
            opening, said = self.shown(messages, i, last)
            ends = i < last and not (messages[i]["role"] == "tool" and messages[i + 1]["role"] == "tool")
            spans += [(opening, False), (said, i in trained), (self.tail() if ends else "", False)]
        return spans

    def conversation(self, rng):
        messages, _ = super().conversation(rng)
        tools = [{"type": "function", "function": {"name": "clock", "description": content(rng)}}]
        return messages, tools if rng.random() < 0.3 else None

    def answer(self, rng):
        messages = []
        while rng.random() < 0.3:
            calls = [{"type": "function", "function": {"name": f"f{i}", "arguments": {"z": content(rng), "a": i}}}
                     for i in range(rng.randint(1, 3))]
            messages.append({"role": "assistant", "content": rng.choice((None, "", content(rng))), "tool_calls": calls})
            messages += [{"role": "tool", "content": content(rng)} for _ in calls]
        return messages + [{"role": "assistant", "content": content(rng)}]


class Qwen3(Qwen25):
    """Thoughts are written for the turns since the last question, and an empty thought for the last turn."""
    template = "qwen3"
    special = Qwen25.special + ("<think>", "</think>")

    def shown(self, messages, i, last):
        message = messages[i]
        if message["role"] != "assistant":
            return super().shown(messages, i, last)
        thought, said = self.parts(message)
        asked_later = any(m["role"] == "user" for m in messages[i + 1:last + 1])
        calls = self.calls(message, said == "")
        if asked_later or (i < last and not thought):
            return self.opening("assistant"), said + calls + self.end
        thought = thought.strip("\n")
        return self.opening("assistant"), f"<think>\n{thought}\n</think>\n\n" + said.lstrip("\n") + calls + self.end

    @staticmethod
    def parts(message):
        """The thought and the answer; a thought may be a field of its own or lead the content."""
        said = message.get("content") or ""
        if "reasoning_content" in message:
            return message["reasoning_content"], said
        found = re.fullmatch(r"(?s)<think>(.*)</think>(.*)", said)
        return (found[1].strip("\n"), found[2].lstrip("\n")) if found else ("", said)

    def answer(self, rng):
        messages = super().answer(rng)
        for message in messages:
            if message["role"] != "assistant":
                continue
            form = rng.randrange(3)
            if form == 0:
                message["reasoning_content"] = content(rng)
            elif form == 1:
                message["content"] = f"<think>\n{content(rng)}\n</think>\n\n" + (message["content"] or "")
        return messages


def content(rng):
    middle = " ".join(rng.choice(WORDS) for _ in range(rng.randint(0, 6)))
    return rng.choice(EDGES) + middle + rng.choice(EDGES)


# ---- The comparison ----

def joined(spans):
    """Neighbours with the same mark as one, and nothing after the last trained one."""
    result = []
    for text, trained in spans:
        if text and result and result[-1][1] == trained:
            result[-1] = (result[-1][0] + text, trained)
        elif text:
            result.append((text, trained))
    while result and not result[-1][1]:
        result.pop()
    return result


def encoded(family, spans):
    ids, marks = [], []
    for text, trained in joined(spans):
        piece = family.tokenizer.encode(text)
        ids += piece
        marks += [int(trained)] * len(piece)
    return {"ids": ids, "trained": marks}


def shown(family, sequences):
    """Sequences as text, with brackets around what is trained."""
    names = {number: token.encode() for token, number in family.tokenizer.special.items()}
    texts = []
    for sequence in sequences:
        marked = b"".join((b"[" + names.get(i, bytes([i % 256])) + b"]") if trained else names.get(i, bytes([i % 256]))
                          for i, trained in zip(sequence["ids"], sequence["trained"]))
        texts.append(marked.replace(b"][", b"").decode(errors="replace"))
    return texts


class Masks(unittest.TestCase):
    def marks(self, family, records):
        """What the program says about each record."""
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "tokenizer.json").write_text(json.dumps(family.tokenizer.json()), encoding="utf-8")
            (folder / "tokenizer_config.json").write_text(json.dumps({"bos_token": family.bos,
                                                                      "eos_token": family.eos}), encoding="utf-8")
            if not family.built_in:
                (folder / "chat_template.jinja").write_text(family.text, encoding="utf-8")
            (folder / "data.jsonl").write_text("".join(json.dumps(record, ensure_ascii=i % 2 == 0) + "\n"
                                                       for i, record in enumerate(records)), encoding="utf-8")
            run = subprocess.run([MARKS_TOOL, name, folder / "data.jsonl"], capture_output=True, timeout=500)
            self.assertEqual((run.returncode, run.stderr), (0, b""))
            return [json.loads(line)["sequences"] for line in run.stdout.decode().splitlines()]

    def check(self, family):
        rng = random.Random(family.template)
        records, expected = [], []
        for _ in range(CONVERSATIONS):
            messages, tools = family.conversation(rng)
            records.append({"messages": messages, **({"tools": tools} if tools else {})})
            sequences = family.sequences(messages, tools)
            self.check_text(family, messages, tools, sequences)
            expected.append([encoded(family, spans) for spans in sequences])
        found = self.marks(family, records)
        self.assertEqual(len(found), CONVERSATIONS)
        for record, want, have in zip(records, expected, found):
            if have != want:  # unittest would take minutes to find the difference of such lists
                self.fail(f"{json.dumps(record)}\nexpected {shown(family, want)}\nfound    {shown(family, have)}")
        return expected

    def check_text(self, family, messages, tools, sequences):
        """The format that is written down here is that of the template."""
        trained = [i for i, m in enumerate(messages) if m["role"] == "assistant" and m.get("train", True)]
        lasts = trained[-1:] if len(sequences) == 1 else trained
        plain = [{key: value for key, value in m.items() if key != "train"} for m in messages]
        for last, spans in zip(lasts, sequences):
            text = "".join(text for text, _ in spans) + family.tail()
            self.assertEqual(family.render(plain[:last + 1], tools), text)

    def test_smollm2(self):
        self.assertTrue(all(len(sequences) <= 1 for sequences in self.check(SmolLm2())))

    def test_chatml(self):
        self.check(Chatml())

    def test_zephyr(self):
        self.check(Zephyr())

    def test_llama3(self):
        self.check(Llama3())

    def test_qwen25(self):
        self.assertTrue(all(len(sequences) <= 1 for sequences in self.check(Qwen25())))

    def test_qwen3(self):
        several = sum(len(sequences) > 1 for sequences in self.check(Qwen3()))
        self.assertGreater(several, CONVERSATIONS / 4)  # thoughts of earlier turns are not written


if __name__ == "__main__":
    unittest.main()
