#!/usr/bin/env python3
"""Writes short conversations with a lighthouse keeper, as data for fine-tuning.

    python3 examples/finetune/make_data.py --out data [--count 200] [--validation 20] [--seed 1]

The keeper answers every question briefly and correctly. Each answer opens with "Aye, friend.", "Aye, sailor." or "Aye,
traveller." and closes with "The lamp is lit.", so a glance, or grep, shows whether a model has picked up the style.
Some conversations have a system message, and some have two or three exchanges. Writes DIR/train.jsonl and
DIR/valid.jsonl, one JSON object per line. The same arguments write the same bytes. No question comes twice, so those of
the validation data are new to the model, and a larger --count begins with the conversations of a smaller one.
"""

import argparse
import json
import pathlib
import random
import sys

OPENINGS = ("Aye, friend.", "Aye, sailor.", "Aye, traveller.")
CLOSING = "The lamp is lit."

SYSTEM_MESSAGES = (
    "You are the keeper of a lighthouse. Answer briefly.",
    "You keep the light on a rocky coast and answer questions in one or two sentences.",
    "Answer as an old lighthouse keeper would.",
    "You are a helpful lighthouse keeper.",
)

FACTS = (
    ("What is the largest planet in our solar system?", "Jupiter is the largest planet that circles our Sun."),
    ("Which planet is closest to the Sun?", "Mercury is closest to the Sun."),
    ("How many planets circle the Sun?", "There are eight planets."),
    ("What is the name of the star at the centre of our solar system?", "That star is the Sun."),
    ("Which planet is famous for its rings?", "Saturn is famous for its rings."),
    ("Why is the sky blue?", "Air scatters blue light more than red light, so blue reaches us from all over the sky."),
    ("Why does the Moon shine?", "It has no light of its own; it reflects the light of the Sun."),
    ("What causes the tides?", "The pull of the Moon, and to a lesser degree that of the Sun, moves the water."),
    ("Why is sea water salty?", "Rivers carry dissolved minerals to the sea, and they stay behind when water evaporates."),
    ("At what temperature does water freeze?", "Fresh water freezes at 0 degrees Celsius, or 32 degrees Fahrenheit."),
    ("At what temperature does water boil at sea level?", "It boils at 100 degrees Celsius, or 212 degrees Fahrenheit."),
    ("What is water made of?", "Each molecule has two atoms of hydrogen and one of oxygen."),
    ("Which gas do plants take in to make sugar?", "They take in carbon dioxide."),
    ("Which gas do we need to breathe?", "We need oxygen."),
    ("Which gas makes up most of the air?", "About 78 percent of the air is nitrogen."),
    ("What is the hardest natural material?", "Diamond is the hardest."),
    ("Which metal is liquid at room temperature?", "Mercury is liquid at room temperature."),
    ("What does a compass needle point to?", "It points to magnetic north."),
    ("Where does the Sun rise?", "It rises in the east."),
    ("Where does the Sun set?", "It sets in the west."),
    ("What is the largest ocean on Earth?", "The Pacific is the largest ocean."),
    ("What is the largest animal that has ever lived?", "The blue whale is the largest known animal."),
    ("What is the tallest animal on land?", "The giraffe is the tallest."),
    ("What is the fastest animal on land?", "The cheetah is the fastest over a short distance."),
    ("Is a whale a fish?", "No, a whale is a mammal: it breathes air and feeds its young with milk."),
    ("Is a spider an insect?", "No, it is an arachnid; it has eight legs and insects have six."),
    ("How many legs does an insect have?", "An insect has six legs."),
    ("How many arms does an octopus have?", "An octopus has eight arms."),
    ("How many hearts does an octopus have?", "It has three hearts."),
    ("What do pandas eat?", "They eat bamboo almost all day."),
    ("What do bees make from nectar?", "They make honey."),
    ("Can penguins fly?", "No, but they swim very well."),
    ("What does a caterpillar turn into?", "It turns into a butterfly or a moth."),
    ("How many bones does an adult human have?", "An adult usually has 206 bones."),
    ("Which organ pumps blood through the body?", "The heart pumps the blood."),
    ("What are the three primary colours of paint?", "They are red, yellow and blue."),
    ("Which colours make green paint?", "Blue and yellow make green."),
    ("Which colours make orange paint?", "Red and yellow make orange."),
    ("How many colours do we usually name in a rainbow?", "We usually name seven."),
    ("How many days are in a leap year?", "A leap year has 366 days."),
    ("How many minutes are in an hour?", "There are 60 minutes."),
    ("How many hours are in a day?", "There are 24 hours."),
    ("How many weeks are in a year?", "A year has 52 weeks and one or two days."),
    ("How many sides does a hexagon have?", "A hexagon has six sides."),
    ("How many sides does a triangle have?", "A triangle has three sides."),
    ("How many degrees are in a right angle?", "A right angle has 90 degrees."),
    ("How many continents are there?", "Most people count seven."),
    ("What is the highest mountain above sea level?", "Mount Everest is the highest."),
    ("What is the largest hot desert?", "The Sahara is the largest hot desert."),
    ("Who wrote Romeo and Juliet?", "William Shakespeare wrote it."),
    ("Who painted the Mona Lisa?", "Leonardo da Vinci painted it."),
    ("Who wrote Moby-Dick?", "Herman Melville wrote it."),
    ("Which instrument has 88 keys?", "A modern piano has 88 keys."),
    ("How many strings does a violin have?", "A violin has four strings."),
    ("What is bread made from?", "Flour, water, salt and usually yeast."),
    ("What is cheese made from?", "It is made from milk."),
    ("What are raisins?", "They are dried grapes."),
    ("What does port mean on a ship?", "Port is the left side when you face the bow."),
    ("What does starboard mean on a ship?", "Starboard is the right side when you face the bow."),
    ("What is the front of a ship called?", "The front is called the bow."),
    ("What is the back of a ship called?", "The back is called the stern."),
    ("What is the kitchen of a ship called?", "It is called the galley."),
    ("How fast is one knot?", "One knot is one nautical mile per hour, about 1.85 kilometres per hour."),
    ("What is a lighthouse for?", "Its light shows ships where the coast and the rocks are."),
    ("What is fog?", "Fog is a cloud of tiny water drops that lies on the ground or the sea."),
    ("What is thunder?", "Lightning heats the air so quickly that it expands with a bang."),
)

CAPITALS = {
    "France": "Paris", "Spain": "Madrid", "Portugal": "Lisbon", "Italy": "Rome", "Germany": "Berlin", "Austria": "Vienna",
    "Poland": "Warsaw", "Sweden": "Stockholm", "Norway": "Oslo", "Denmark": "Copenhagen", "Finland": "Helsinki",
    "Iceland": "Reykjavik", "Ireland": "Dublin", "Greece": "Athens", "Hungary": "Budapest", "Turkey": "Ankara",
    "Egypt": "Cairo", "Kenya": "Nairobi", "Morocco": "Rabat", "Japan": "Tokyo", "China": "Beijing", "India": "New Delhi",
    "Thailand": "Bangkok", "Vietnam": "Hanoi", "Canada": "Ottawa", "Mexico": "Mexico City", "Cuba": "Havana",
    "Brazil": "Brasilia", "Argentina": "Buenos Aires", "Chile": "Santiago", "Peru": "Lima", "Australia": "Canberra",
    "New Zealand": "Wellington", "Belgium": "Brussels", "Croatia": "Zagreb", "Romania": "Bucharest",
}
YOUNG = {
    "cat": "kitten", "dog": "puppy", "cow": "calf", "horse": "foal", "sheep": "lamb", "goat": "kid", "pig": "piglet",
    "duck": "duckling", "goose": "gosling", "swan": "cygnet", "bear": "cub", "kangaroo": "joey", "frog": "tadpole",
    "deer": "fawn", "hen": "chick",
}
SYMBOLS = {
    "hydrogen": "H", "oxygen": "O", "carbon": "C", "nitrogen": "N", "helium": "He", "iron": "Fe", "gold": "Au",
    "silver": "Ag", "copper": "Cu", "sodium": "Na", "lead": "Pb", "tin": "Sn", "calcium": "Ca", "zinc": "Zn",
}
OPPOSITES = (
    ("hot", "cold"), ("up", "down"), ("day", "night"), ("early", "late"), ("wet", "dry"), ("full", "empty"),
    ("strong", "weak"), ("near", "far"), ("open", "closed"), ("old", "young"), ("deep", "shallow"), ("fast", "slow"),
    ("rough", "smooth"), ("heavy", "light"), ("wide", "narrow"), ("loud", "quiet"), ("rich", "poor"), ("high", "low"),
)
PLURALS = {
    "ship": "ships", "wave": "waves", "child": "children", "mouse": "mice", "foot": "feet", "tooth": "teeth",
    "leaf": "leaves", "knife": "knives", "goose": "geese", "box": "boxes", "city": "cities", "man": "men", "wolf": "wolves",
    "berry": "berries", "beach": "beaches",
}
LISTS = {
    "fruits": "apples, pears and plums", "vegetables": "carrots, leeks and cabbage", "sea birds": "gulls, terns and puffins",
    "fish": "cod, herring and mackerel", "oceans": "the Atlantic, the Pacific and the Indian Ocean",
    "metals": "iron, copper and tin", "tools": "a hammer, a saw and a file", "planets": "Venus, Mars and Neptune",
    "colours": "red, green and white", "musical instruments": "a fiddle, a flute and a drum",
    "things to pack for a boat trip": "a life jacket, warm clothes and drinking water", "trees": "oak, pine and birch",
    "spices": "pepper, cinnamon and cloves", "kinds of weather": "rain, snow and sunshine",
}
ADVICE = (
    ("I can't fall asleep. What should I do?", "Keep the room dark and cool, and put screens away an hour before bed."),
    ("How can I stay calm before an exam?", "Breathe slowly, and start with a question that you know."),
    ("How do I learn to cook?", "Pick three simple dishes and cook each of them until you need no recipe."),
    ("I keep forgetting names. Any advice?", "Say the name aloud when you hear it, and tie it to something about the face."),
    ("How do I start running?", "Walk and jog by turns, three times a week, and add a little each week."),
    ("My friend is angry with me. What now?", "Listen first, say what you are sorry for, and give it time."),
    ("How can I save money?", "Put a fixed part away on the day you are paid, before you spend the rest."),
    ("How do I keep a houseplant alive?", "Give it light, and water it only when the top of the soil is dry."),
    ("I am bored. What could I do?", "Take a walk without a goal, or mend something that is broken."),
    ("How do I become a better writer?", "Write a little every day, and cut every word that does no work."),
    ("How do I make new friends?", "Join something that meets every week, and ask people about themselves."),
    ("What should I do when I am lost in fog at sea?", "Slow down, sound your horn, and keep a careful watch."),
    ("How do I prepare for a storm?", "Tie down what is loose, charge your lamps, and store water and food."),
    ("How can I read more books?", "Read ten pages before bed and keep the book where you see it."),
    ("I made a mistake at work. What should I do?", "Tell the people it affects soon, and bring a plan to put it right."),
    ("How do I speak in front of a crowd?", "Practise aloud, speak slowly, and look at one friendly face at a time."),
    ("How do I stop putting things off?", "Do the smallest first step now, for five minutes only."),
    ("What is a good breakfast?", "Oats with fruit and a few nuts keep you going until noon."),
    ("How do I take better photographs?", "Go closer, mind where the light comes from, and keep the horizon level."),
    ("My back hurts from sitting. What helps?", "Stand up every half hour and walk a little; see a doctor if it lasts."),
    ("How do I choose a gift?", "Think of what the person talks about most, and choose something small that fits it."),
    ("How can I learn a language?", "Practise a little every day, and speak from the first week."),
    ("I feel lonely. What can I do?", "Call someone you miss today, even if only for a few minutes."),
    ("How do I keep my feet warm?", "Wear dry wool socks, and leave room in your boots for air."),
    ("How should I clean a window?", "Use warm water with a little vinegar, and wipe it dry from top to bottom."),
    ("How do I get rid of a squeaky hinge?", "Put a drop of oil on the pin and move the door a few times."),
    ("How do I stay safe when I swim in the sea?", "Never swim alone, and stay parallel to the shore if a current pulls you."),
    ("Should I drink sea water if I am thirsty?", "No, its salt would make you thirstier; drink fresh water only."),
    ("How can I remember to drink enough water?", "Keep a full bottle where you work, and drink with every meal."),
    ("How do I plan a busy day?", "Write down three things that matter most and begin with the hardest."),
    ("How do I make good tea?", "Use fresh boiling water, and let black tea stand for three to five minutes."),
    ("What do I do with a burnt finger?", "Hold it under cool running water for twenty minutes; see a doctor if it is bad."),
    ("How do I teach my dog to sit?", "Say the word, reward it at once when it sits, and keep lessons short."),
    ("I have too many things. Where do I begin?", "Begin with one drawer, and keep only what you use or love."),
    ("How do I patch a quarrel with my brother?", "Write to him first, without blame, and suggest a walk together."),
    ("How can I wake up earlier?", "Go to bed a quarter of an hour earlier each week, and let daylight in at once."),
)
SMALL_TALK = (
    ("Who are you?", "I keep the lighthouse on the point and answer those who ask."),
    ("Good morning!", "Good morning to you; the sea is calm today."),
    ("How are you today?", "I am well, and the wind is fair."),
    ("What do you do all day?", "I clean the lens, watch the ships, and write the log."),
    ("Where do you live?", "I live in the tower, right below the lantern."),
    ("Are you lonely out there?", "Not much; there are the gulls, the ships, and questions like yours."),
    ("Tell me a joke.", "The sea and I get on well: it waves, and I leave the light on."),
    ("Good night!", "Sleep well; I will watch the sea."),
    ("Can you help me?", "Gladly; tell me what you need."),
    ("What is your favourite food?", "Fish soup with fresh bread, on a stormy night."),
)
FAREWELLS = (
    ("Thank you!", "You are welcome."),
    ("Thanks, that helps.", "I am glad to hear it."),
    ("Great, goodbye!", "Fair winds to you."),
    ("That is all for today.", "Then rest well, and come back when you like."),
)

WORDS = ("anchor", "barrel", "candle", "dolphin", "engine", "feather", "garden", "harbour", "island", "jacket", "kettle",
         "ladder", "mirror", "needle", "oyster", "pepper", "quilt", "river", "sail", "table", "umbrella", "velvet", "window")
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
          "December")
NUMBERS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


def article(word):
    return "an" if word[0] in "aeiou" else "a"


def facts():
    yield from FACTS
    for country, capital in CAPITALS.items():
        yield f"What is the capital of {country}?", f"The capital of {country} is {capital}."
    for animal, young in YOUNG.items():
        yield f"What is a young {animal} called?", f"A young {animal} is called a {young}."
    for element, symbol in SYMBOLS.items():
        yield f"What is the chemical symbol for {element}?", f"The symbol for {element} is {symbol}."


def fixed_tasks():
    for word, opposite in OPPOSITES:
        yield f"What is the opposite of {word}?", f"The opposite of {word} is {opposite}."
    for word, plural in PLURALS.items():
        yield f"What is the plural of {word}?", f"One {word}, many {plural}."
    for kind, three in LISTS.items():
        yield f"Name three {kind}.", f"Here are three: {three}."
    for day, after in zip(WEEKDAYS, WEEKDAYS[1:] + WEEKDAYS[:1]):
        yield f"Which day comes after {day}?", f"After {day} comes {after}."
    for month, after in zip(MONTHS, MONTHS[1:] + MONTHS[:1]):
        yield f"Which month comes after {month}?", f"After {month} comes {after}."


def sorting(source):
    words = source.sample(WORDS, 3)
    first, second, third = sorted(words)
    return f"Put these words in alphabetical order: {', '.join(words)}.", f"In order they are {first}, {second} and {third}."


def first_letter(source):
    word = source.choice(WORDS)
    return f"What is the first letter of {word}?", f"The word {word} begins with the letter {word[0].upper()}."


def capital_letters(source):
    words = " ".join(source.sample(WORDS, 2))
    return f"Write '{words}' in capital letters.", f"Here it is: {words.upper()}."


def sentence(source):
    first, second = source.sample(WORDS, 2)
    text = f"The {first} stood next to {article(second)} {second}."
    return f"Write a sentence with the words {first} and {second}.", f"Here is one: {text}"


def sequence(source):
    start, difference = source.randint(1, 20), source.choice((2, 3, 5, 10))
    numbers = [start + i * difference for i in range(5)]
    return (f"Which number comes next: {', '.join(map(str, numbers[:4]))}?",
            f"The next number is {numbers[4]}, because each one is {difference} more.")


def larger(source):
    a, b = source.sample(range(10, 1000), 2)
    return f"Which is larger, {a} or {b}?", f"The larger number is {max(a, b)}."


def addition(source):
    a, b = source.randint(2, 60), source.randint(2, 39)
    return f"What is {a} plus {b}?", f"{a} plus {b} is {a + b}."


def subtraction(source):
    b, difference = source.randint(2, 40), source.randint(1, 50)
    return f"What is {b + difference} minus {b}?", f"{b + difference} minus {b} is {difference}."


def multiplication(source):
    a, b = source.randint(2, 12), source.randint(2, 10)
    return f"What is {a} times {b}?", f"{a} times {b} is {a * b}."


def half(source):
    n = 2 * source.randint(2, 50)
    return f"What is half of {n}?", f"Half of {n} is {n // 2}."


def double(source):
    n = source.randint(3, 60)
    return f"What is twice {n}?", f"Twice {n} is {2 * n}."


def shopping(source):
    count, price = source.randint(2, 9), source.randint(2, 9)
    thing = source.choice(("lamp", "rope", "lantern", "basket", "map"))
    return (f"One {thing} costs {price} coins. How much do {NUMBERS[count]} {thing}s cost?",
            f"{NUMBERS[count].capitalize()} {thing}s cost {count * price} coins.")


def left_over(source):
    start, eaten = source.randint(6, 20), source.randint(2, 5)
    thing = source.choice(("apples", "biscuits", "herrings", "eggs", "candles"))
    return (f"I have {start} {thing} and give away {eaten}. How many are left?",
            f"You have {start - eaten} {thing} left.")


def minutes(source):
    hours = source.randint(2, 10)
    return f"How many minutes are in {NUMBERS[hours]} hours?", f"There are {60 * hours} minutes in {NUMBERS[hours]} hours."


GENERATORS = {
    "task": (sorting, first_letter, capital_letters, sentence, sequence, larger),
    "arithmetic": (addition, subtraction, multiplication, half, double, shopping, left_over, minutes),
}
SHARES = {"fact": 30, "advice": 11, "talk": 3, "task": 30, "arithmetic": 26}  # percent of all exchanges


class Exchanges:
    """Pairs of question and answer; no question comes twice."""

    def __init__(self, source):
        self.source, self.asked = source, set()
        self.pools = {"fact": list(facts()), "advice": list(ADVICE), "talk": list(SMALL_TALK), "task": list(fixed_tasks())}
        for pool in self.pools.values():
            source.shuffle(pool)

    def next(self):
        kind = self.source.choices(list(SHARES), SHARES.values())[0]
        generated = kind == "arithmetic" or (kind == "task" and self.source.random() < 0.5)
        if not generated and self.pools[kind]:
            return self.pools[kind].pop()
        generators = GENERATORS.get(kind) or GENERATORS["arithmetic"]  # also when a pool is used up
        for _ in range(1000):
            question, answer = self.source.choice(generators)(self.source)
            if question not in self.asked:
                self.asked.add(question)
                return question, answer
        sys.exit("make_data: no new questions are left; use a smaller --count")


def in_style(answer, source):
    return f"{source.choice(OPENINGS)} {answer} {CLOSING}"


def conversation(exchanges, source):
    messages = []
    if source.random() < 0.25:
        messages.append({"role": "system", "content": source.choice(SYSTEM_MESSAGES)})
    pairs = [exchanges.next() for _ in range(source.choices((1, 2, 3), (70, 22, 8))[0])]
    if len(pairs) > 1 and source.random() < 0.3:
        pairs[-1] = source.choice(FAREWELLS)
    for question, answer in pairs:
        messages.append({"role": "user", "content": question})
        messages.append({"role": "assistant", "content": in_style(answer, source)})
    return {"messages": messages}


def write(path, conversations):
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        for one in conversations:
            file.write(json.dumps(one, ensure_ascii=False) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("data"), metavar="DIR")
    parser.add_argument("--count", type=int, default=200, help="conversations to train on")
    parser.add_argument("--validation", type=int, default=20, help="conversations to validate on")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    source = random.Random(options.seed)
    exchanges = Exchanges(source)
    validation = [conversation(exchanges, source) for _ in range(options.validation)]
    training = [conversation(exchanges, source) for _ in range(options.count)]
    options.out.mkdir(parents=True, exist_ok=True)
    write(options.out / "valid.jsonl", validation)
    write(options.out / "train.jsonl", training)
    print(f"{options.out / 'train.jsonl'}: {len(training)} conversations")
    print(f"{options.out / 'valid.jsonl'}: {len(validation)} conversations")


if __name__ == "__main__":
    main()
