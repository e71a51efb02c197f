#include "data/story_rules.h"

namespace quern::data {

// Related words are in tables, so that there are dependencies to learn across many sentences: who is "he" and who is
// "she", what a kite is for, what a goat likes, where an owl lives, how a rainy day ends.
const std::string_view kStoryRules = R"RULES(
%person name he his him kid
  Anna | she | her | her | girl
  Ben | he | his | him | boy
  Clara | she | her | her | girl
  Dora | she | her | her | girl
  Emil | he | his | him | boy
  Finn | he | his | him | boy
  Greta | she | her | her | girl
  Hugo | he | his | him | boy
  Ida | she | her | her | girl
  Jonas | he | his | him | boy
  Lena | she | her | her | girl
  Max | he | his | him | boy
  Nora | she | her | her | girl
  Otto | he | his | him | boy
  Rosa | she | her | her | girl
  Sam | he | his | him | boy

%animal a name sound food home
  a mouse | mouse | Squeak | cheese | behind the wall
  a frog | frog | Croak | porridge | in the pond
  a duck | duck | Quack | bread | among the reeds
  an owl | owl | Hoo-hoo | biscuits | in the hollow oak
  a fox | fox | Yip | grapes | under the old roots
  a rabbit | rabbit | Sniff-sniff | carrots | in a burrow
  a bear | bear | Grumble | honey | in a deep cave
  a hedgehog | hedgehog | Snuffle | apples | under the leaves
  a squirrel | squirrel | Chip-chip | nuts | in a nest of twigs
  a cat | cat | Meow | cream | in the warm barn
  a goose | goose | Honk | corn | on a little island
  a goat | goat | Meh | cabbage | on the steep rocks

%thing name use used
  kite | fly | flew
  ball | bounce | bounced
  lantern | light | lit
  drum | beat | beat
  boat | sail | sailed
  bell | ring | rang
  book | read | read
  whistle | blow | blew
  hat | wear | wore
  flag | wave | waved
  harp | play | played
  top | spin | spun

%place name at
  meadow | in the meadow
  river | by the river
  market | at the market
  garden | in the garden
  beach | on the beach
  forest | in the forest
  harbour | at the harbour
  orchard | in the orchard
  castle | at the castle
  bridge | near the bridge
  park | in the park
  waterfall | by the waterfall

%home at to
  by the sea | the house by the sea
  near the woods | the hut near the woods
  on a green hill | the house on the green hill
  in a tall tower | the tall tower
  next to the old mill | the old mill
  on a small farm | the small farm
  in a little red house | the little red house
  at the end of the road | the house at the end of the road

%weather name end
  sunny | the sun had gone down
  windy | the wind had dropped
  rainy | the rain had stopped
  snowy | the last snow had fallen
  foggy | the fog had lifted
  cloudy | the clouds had drifted away
  frosty | the frost had melted
  stormy | the storm had passed

%time name
  morning
  afternoon
  evening
  day

%trait name
  brave
  thoughtful
  clever
  kind
  gentle
  cheerful
  patient
  generous

%color name
  red
  blue
  green
  yellow
  silver
  white
  purple
  golden

%cloth name
  scarf
  blanket
  coat
  shawl
  jacket

%monster a
  a ghost
  a dragon
  a giant
  a troll
  a witch
  a wolf

%relative name
  mother
  father
  grandmother
  grandfather
  uncle
  aunt

%cake a name
  an apple pie | pie
  a honey cake | cake
  a plum tart | tart
  a loaf of bread | bread
  a cherry cake | cake
  a pear tart | tart

%work name
  raft
  tree house
  bridge of stones
  tower of sticks
  tent

$hero person
$friend person hero
$pet animal
$thing thing
$place place
$home home
$weather weather
$time time
$trait trait
$color color
$cloth cloth
$monster monster
$cook relative
$listener relative
$cake cake
$work work

=Story
  <Open> <Day> <Plot>

=Open
  4: Once upon a time there was a {trait!} child named {hero!}, who lived {home!.at}.
  3: {hero!} was a {trait!} {kid} who lived {home!.at}.
  2: Long ago, {home!.at}, there lived a {trait!} child named {hero!}.
  1: This is the story of {hero!}, a {trait!} {kid} who lived {home!.at}.

=Day
  3: One {weather!} {time!},
  1: On a {weather!} {time!},
  1: It was a {weather!} {time!}, and

=Plot
  4: {hero} took a {color!} {thing!} to the {place!}. <Lose> <Look> <Helper> <Tell> <Found> <Thank> <End>
  4: {hero} heard a <Voice> voice {place!.at}. <Meet> <Trouble> <Reward> <End>
  3: {hero} and {friend!} went to the {place!} together. <Pair> <PairEnd>
  2: {hero} wanted to give {friend!} a present. <Make> <Give> <GiftUse> <PairEnd>
  2: {hero} was woken by a <Loud> noise. <Guess> <Dare> <Reveal> <Laugh> <Treat> <HomeEnd>
  2: {hero} baked {cake!.a} with {his} {cook!}. <Smell> <Ask> <Offer> <HomeEnd>
  2: {hero} threw a coin into the well. "I wish for a {color!} {thing!}," {he} said. <Come> <Use> <HomeEnd>

=Lose
  {He} {thing.used} the {thing} for a while, and then it was gone.
  {He} put it down for a moment, and then it was gone.
  {He} wanted to {thing.use} it there, but it fell out of {his} bag.
  On the way there it fell out of {his} bag.

=Look
  {He} looked under every <Nook>, but it was not there.
  {He} searched behind every <Nook>, but it was not there.
  "Where is my {thing}?" {he} cried.
  "Oh no," said {hero}. "My {color} {thing} is gone!"
  {hero} sat down on a <Seat> and began to cry.

=Helper
  Just then {pet!.a} came by.
  Then {pet!.a} looked out from behind a <Nook>.
  After a while {he} met {pet!.a}.
  {pet!.A} had seen it all.

=Tell
  "{pet.sound}! I saw a {color} {thing} {pet.home}," said the {pet}.
  "{pet.sound}! Do not be sad," said the {pet}. "I will help you."
  "I know where your {thing} is," said the {pet}. "{pet.sound}! Come with me!"
  "{pet.sound}!" said the {pet}, and led {him} down a <Path> path.

=Found
  And there it was, {pet.home}.
  Together they found it {pet.home}.
  They looked and looked, and at last they saw the {color} {thing} {pet.home}.
  Soon {hero} held the {color} {thing} in {his} hands again.

=Thank
  {hero} gave the {pet} some {pet.food} to say thank you.
  "Thank you, {pet}!" said {hero}, and gave it some {pet.food}.
  They sat down on a <Seat> and shared some {pet.food}.
  {hero} was so <Glad> that {he} hugged the {pet}.

=End
  3: From that day on, {hero} and the {pet} were <Best> friends.
  3: When {weather.end}, {hero} walked home to {home.to}, <Mood>.
  2: And on every {weather} {time} after that, the {pet} came to visit {hero}.
  2: That night {hero} dreamed of the {pet} {pet.home}.
  2: {hero} ran home and told {his} {listener!} about the {pet}.

=HomeEnd
  3: From that day on, {hero} and the {pet} were <Best> friends.
  3: When {weather.end}, the {pet} went back to its home {pet.home}.
  2: And on every {weather} {time} after that, the {pet} came to visit {hero}.
  2: That night {hero} dreamed of the {pet} {pet.home}.
  2: {hero} waved to the {pet} until it was out of sight.

=Meet
  It was {pet!.a}.
  {pet!.A} was sitting under a <Nook>.
  Behind a <Nook> sat {pet!.a}.

=Trouble
  3: "I am so hungry," said the {pet}. <Feed>
  3: "I am lost," said the {pet}. "I live {pet.home}." <Guide>
  2: "I am cold," said the {pet}. <Warm>
  2: "My foot is stuck," said the {pet}. <Free>

=Feed
  {hero} ran home and came back with some {pet.food}.
  {hero} had some {pet.food} in {his} bag, and the {pet} ate it all up.
  "Do you like {pet.food}?" asked {hero}, and the {pet} nodded.

=Guide
  {hero} carried the {pet} all the way home.
  {hero} knew the way, and they walked there <Gently>.
  "Follow me," said {hero}, and they went down a <Path> path until they were there.

=Warm
  {hero} wrapped the {pet} in {his} {color!} {cloth!}.
  {hero} made a fire, and they sat beside it until {weather.end}.
  "You may have my {color!} {cloth!}," said {hero}.

=Free
  {hero} pulled <Gently> until the {pet} was free.
  {hero} lifted the heavy stone, and the {pet} jumped out.
  "Hold still," said {hero}, and freed the {pet} <Gently>.

=Reward
  "{pet.sound}! You are a <Best> friend," said the {pet}.
  "Thank you, {hero}," said the {pet}. "You are very {trait}."
  The next day the {pet} brought {him} a {thing!}. <Use>
  To say thank you, the {pet} gave {him} an old {thing!}. <Use>

=Use
  {He} {thing.used} it every day.
  {hero} had always wanted to {thing.use} a {thing} of {his} own.
  "Now I can {thing.use} it with you," said {hero}.

=Pair
  3: They found a {color!} {thing!} under a <Nook>. <Quarrel> <Settle>
  3: "Let us run to the <Nook>," said {friend}. <Race>
  2: They wanted to build a {work!}. <Build>

=Quarrel
  "It is mine!" said {hero}. "No, it is mine!" said {friend}.
  Both of them wanted to {thing.use} it.
  {friend} took it first, and {hero} was angry.

=Settle
  Then {hero} had an idea. "You {thing.use} it today, and I will {thing.use} it tomorrow," {he} said.
  Then they looked at each other and began to laugh.
  {friend} thought for a while. "Let us share the {thing}," {friend.he} said.
  They pulled and pulled until they both fell into the mud.
  So first {friend} {thing.used} the {thing}, and then {hero} {thing.used} it too.

=Race
  {hero} ran as fast as the wind and won. "You are so fast!" said {friend}.
  {friend} ran as fast as the wind and won. "Well done!" said {hero}.
  {hero} fell and hurt {his} knee, so {friend} stopped and helped {him} up.
  {friend} fell and hurt {friend.his} knee, so {hero} stopped and helped {friend.him} up.
  They ran side by side, and nobody won.

=Build
  {hero} brought the <Stuff>, and {friend} tied it all together.
  They worked until {weather.end}, but the {work} fell down. "We will try again tomorrow," said {friend}.
  It took them <Days>, and it was a <Finest> {work}.

=PairEnd
  3: From that day on, {hero} and {friend} were <Best> friends.
  3: When {weather.end}, they walked home <Together>.
  2: And on every {weather} {time} after that, {friend} came to visit {hero}.
  2: That night {hero} told {his} {listener!} about {friend}.

=Make
  {He} worked for <Days> and made a {color!} {thing!}.
  {He} went to the market and chose a {color!} {thing!}.
  {He} had no money, so {he} made a {color!} {thing!} out of <Stuff>.

=Give
  {friend} opened the box and smiled.
  "For me?" said {friend}. "What a <Finest> {thing}!"
  "I have always wanted to {thing.use} a {color} {thing}," said {friend}.
  {friend} was so <Glad> that {friend.he} danced.

=GiftUse
  They {thing.used} the {thing} together until {weather.end}.
  First {friend} {thing.used} it, and then {hero} {thing.used} it too.
  "You are very {trait}, {hero}," said {friend}.

=Guess
  "Is it {monster!.a}?" {he} whispered.
  "That must be {monster!.a}," {he} thought.
  {He} thought of {monster!.a} and held {his} breath.

=Dare
  {He} wanted to hide under the bed, but {he} opened the door.
  {He} took {his} {color!} {cloth!} and went outside.
  {hero} was afraid, but {he} crept <Gently> to the window.

=Reveal
  It was not {monster.a} at all. It was {pet!.a}!
  But it was only {pet!.a} looking for some {pet.food}.
  There stood {pet!.a}, and it was more afraid than {he} was.

=Laugh
  "{pet.sound}!" said the {pet}.
  "You are not {monster.a}!" said {hero}.
  {hero} began to laugh.

=Treat
  {He} gave the {pet} some {pet.food}.
  They sat by the fire and shared some {pet.food}.
  "Come in," {he} said, "I have some {pet.food} for you."

=Smell
  The {cake} smelled so good that {pet!.a} came to the window.
  When it was done, {pet!.a} knocked at the door.
  They put it on a <Seat> to cool, and {pet!.a} came to look at it.

=Ask
  "{pet.sound}! May I have a piece?" asked the {pet}.
  "{pet.sound}! I like {pet.food} better," said the {pet}, "but I will try it."
  "Is it for me?" asked the {pet}.

=Offer
  "Of course," said {hero}, and cut the {cake} into <Three> pieces.
  {His} {cook} laughed and gave the {pet} the biggest piece.
  {hero} gave the {pet} a piece with some {pet.food} on top.
  The {pet} ate the whole {cake}, and everyone laughed.

=Come
  The next day it lay before the door, and beside it sat {pet!.a}.
  Then {pet!.a} climbed out of the well and gave it to {him}.
  A <Loud> voice said, "Here it is!" And {pet!.a} came out of the well.

=Nook
  bush
  tree
  bench
  fence
  hedge
  cart

=Seat
  stone
  log
  stump
  wall
  box
  bench

=Voice
  small
  sad
  soft
  strange

=Loud
  loud
  sudden
  funny
  strange

=Path
  narrow
  winding
  muddy
  stony
  mossy

=Gently
  slowly
  gently
  carefully
  quietly

=Glad
  happy
  glad
  proud
  grateful

=Best
  good
  dear
  true
  great

=Mood
  tired but happy
  singing a song
  with a smile
  thinking of the {pet}

=Together
  hand in hand
  side by side
  singing a song
  tired but happy

=Days
  two days
  three days
  a week
  all night

=Stuff
  straw
  old paper
  wood and string
  ribbons

=Finest
  beautiful
  lovely
  wonderful
  splendid

=Three
  three
  four
  five
  six
)RULES";

}  // namespace quern::data
