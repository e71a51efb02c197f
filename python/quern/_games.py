"""The rules of a board game, written in Python."""


class Game:
    """A board game of your own, to be learned by quern.selfplay().

    Two players take turns, nothing is hidden and nothing is random. Derive from this class, or write any class with the
    same attributes and methods. A state can be any object, but play() must return a new one and leave the old one
    unchanged. Everything is seen by the player to move. The methods are called by several threads, one at a time.

    name        letters, digits, - and _; the name of the class if empty
    shape       (planes, rows, columns) of planes(): the numbers that describe each square of the board
    actions     the number of actions; an action is a number below it, and means the same move in every position
    max_moves   no game is longer
    symmetries  of the board, for more training data: a list of (squares, actions), where squares[i] is the square, row
                by row, to which square i goes, and likewise for actions; or of squares alone if action i is square i

    What the methods return is checked; a quern.Error names the game, the method, what was expected and what was found.

    >>> class Nim(quern.Game):
    ...     \"\"\"Take one to three of ten stones; whoever takes the last one wins. A state is the number of stones.\"\"\"
    ...     shape, actions, max_moves = (1, 1, 10), 3, 10
    ...     def start(self):
    ...         return 10
    ...     def legal(self, stones):
    ...         return [action for action in range(3) if action < stones]
    ...     def play(self, stones, action):
    ...         return stones - action - 1
    ...     def result(self, stones):
    ...         return -1 if stones == 0 else None
    ...     def planes(self, stones):
    ...         return (np.arange(10) < stones).astype(np.float32).reshape(1, 1, 10)
    >>> result = quern.selfplay(Nim(), out="runs/nim", steps=20)
    >>> board = quern.load_board("runs/nim", game=Nim())
    >>> board.best_move(10) + 1  # leaves eight: a multiple of four
    2
    """

    name = ""
    shape = ()
    actions = 0
    max_moves = 0
    symmetries = ()
    key = None  # key(state): bytes, str or int, equal only for positions with equal planes and legal moves: saves time

    def start(self):
        """Returns the state in which a game begins."""
        raise NotImplementedError("start")

    def legal(self, state):
        """Returns the legal actions, at least one. Not called when the game is over."""
        raise NotImplementedError("legal")

    def play(self, state, action):
        """Returns the state after a legal action."""
        raise NotImplementedError("play")

    def result(self, state):
        """Returns None while the game goes on; 1, 0 or -1 if the player to move has won, drawn or lost it."""
        raise NotImplementedError("result")

    def planes(self, state):
        """Returns a float32 array of `shape`, seen by the player to move. All that the network sees."""
        raise NotImplementedError("planes")

    def draw(self, state):
        """Returns the board as text, for people."""
        return str(state)
