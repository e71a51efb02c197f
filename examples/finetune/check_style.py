#!/usr/bin/env python3
"""Asks a run the first question of every conversation of a file, and counts the answers in the keeper's style.

    PYTHONPATH=build/release/python /usr/bin/python3 examples/finetune/check_style.py runs/keeper data/valid.jsonl

Prints questions, answers, and how many answers open with "Aye, friend.", "Aye, sailor." or "Aye, traveller." and close
with "The lamp is lit."; the model always says the most likely token.
"""

import json
import sys

import quern

OPENINGS = ("Aye, friend.", "Aye, sailor.", "Aye, traveller.")


def main():
    run, file = sys.argv[1:]
    model = quern.load(run)
    in_style = count = 0
    with open(file, encoding="utf-8") as lines:
        for line in lines:
            messages = json.loads(line)["messages"]
            question = messages[:[message["role"] for message in messages].index("assistant")]
            answer = model.chat(question, tokens=120, temperature=0).strip()
            print(f"{question[-1]['content']}\n  {answer}")
            in_style += answer.startswith(OPENINGS) and answer.endswith("The lamp is lit.")
            count += 1
    print(f"{in_style} of {count} answers in the keeper's style")


if __name__ == "__main__":
    main()
