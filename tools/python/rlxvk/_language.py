"""Language models: text from GGUF files."""
from __future__ import annotations

import codecs
import math
import warnings
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypedDict

from . import errors
from ._library import Handle, check, ffi, lib, new, text
from ._model import Model, Options, Source

if TYPE_CHECKING:
    from typing_extensions import Unpack

_CAPACITY = 4096 # tokens, unless `load` gets another number
_CACHES = {None: lib.RLXVK_F32, "f32": lib.RLXVK_F32, "f16": lib.RLXVK_F16}


class Sampling(TypedDict, total=False):
    """How tokens are chosen: options of `generate`, `stream` and `chat`. The defaults are those of
    the program `rlxvk generate`.

    temperature   divides the logits; 0 always takes the most likely token. Default 0.8
    top_k         draws only from so many of the most likely tokens; 0: from all. Default 40
    top_p         ... and from the fewest that have this probability together; 1: all. Default 0.95
    seed          of random numbers, 0 to 2^64 - 1. The same calls give the same text. Default 0
    """

    temperature: float
    top_k: int
    top_p: float
    seed: int


def _unsigned(name: str, value: int, bits: int) -> int:
    if 0 <= value < 1 << bits:
        return value
    raise errors.RangeError(f"{name} is {value}; it takes 0 to 2^{bits} - 1")


def _sampling(
    *, temperature: float = 0.8, top_k: int = 40, top_p: float = 0.95, seed: int = 0
) -> tuple[Any, int]:
    """The options as the library takes them: a struct, and the seed."""
    if not (math.isfinite(temperature) and temperature >= 0):
        raise errors.AttrError(f"temperature is {temperature}; it takes 0 or more")
    if not 0 < top_p <= 1:
        raise errors.AttrError(f"top_p is {top_p}; it takes more than 0, up to 1")
    options = new(
        "rlxvk_sample_options",
        temperature=temperature,
        top_k=_unsigned("top_k", top_k, 32),
        top_p=top_p,
    )
    return options, _unsigned("seed", seed, 64)


def _tokens(call: Any, *arguments: Any) -> list[int]:
    """The tokens that a call writes: first it tells how many there are, then it writes them."""
    count = ffi.new("size_t *")
    check(call(*arguments, ffi.NULL, 0, count))
    tokens = ffi.new("uint32_t[]", count[0])
    check(call(*arguments, tokens, count[0], count))
    return list(tokens)


class LanguageModel(Model):
    """A model that continues texts, from a GGUF file. `load` makes it.

        model = rlxvk.load("model.gguf")
        print(model.generate("Once upon a time"))
        for piece in model.stream("Once upon a time"):
            print(piece, end="", flush=True)
        chat = model.chat(system="Be brief.")
        print(chat.reply("Who are you?"))

    It is a Model, too: `model(tokens=array)` gives the logits of whole texts, int32 tokens [batch,
    length] to float32 [batch, length, vocabulary]. Calls and texts have weights of their own on the
    device, so a program that needs both needs the memory twice.

    The first text uploads the weights, and allocates caches for `capacity` tokens. Other sampling
    than that of the last text compiles the graph of a step again.

    Threads. Any thread may use it; `generate` waits until another call is over. There is one cache:
    if another text begins, a stream that is not finished ends with an OrderError. For streams at
    the same time, load the model several times.
    """

    def __init__(self, source: Source, options: Options) -> None:
        if options.cache not in _CACHES:
            raise errors.AttrError(f"no cache of '{options.cache}'; there are: f32, f16")
        if options.capacity is not None and options.capacity < 1:
            raise errors.RangeError(f"capacity is {options.capacity}; it takes 1 or more, or None")
        super().__init__(source, options)
        self._cache = _CACHES[options.cache]
        self._wanted_capacity = options.capacity
        self._words: Handle | None = None
        self._language: Handle | None = None
        self._text: _Text | None = None # whose tokens the caches have

    # ---- Texts and tokens ----

    @property
    def vocabulary(self) -> int:
        """The number of tokens."""
        return int(self._describe().vocabulary)

    @property
    def capacity(self) -> int:
        """The most tokens of a text, prompt and continuation together."""
        if self._wanted_capacity is not None:
            return self._wanted_capacity
        return min(_CAPACITY, int(self._describe().context))

    @property
    def template(self) -> str | None:
        """The family of the chat template, such as "ChatML"; None if it is missing or unknown."""
        return text(self._describe().chat_family) or None

    def encode(self, text: str, begins: bool = True) -> list[int]:
        """Converts a text to tokens. A text that spells a control token gets that token.

        If `begins`, the token that begins every text of this model is put in front, if there is
        one. Raises RangeError if no token stands for some byte, and UnsupportedError or
        UnknownNameError if the file has no tokenizer that rlxvk knows.
        """
        data = text.encode()
        return _tokens(lib.rlxvk_tokenizer_encode, self._tokenizer(), data, len(data), begins)

    def decode(self, tokens: Sequence[int]) -> str:
        """Converts tokens to a text. Control tokens, and numbers that are no token, add nothing.
        Bytes that are not UTF-8 become U+FFFD."""
        items = ffi.new("uint32_t[]", [_unsigned("a token", int(t), 32) for t in tokens])
        length = ffi.new("size_t *")
        call, words = lib.rlxvk_tokenizer_decode, self._tokenizer()
        check(call(words, items, len(items), ffi.NULL, 0, length))
        data = ffi.new("char[]", length[0])
        check(call(words, items, len(items), data, length[0], length))
        return bytes(ffi.buffer(data)).decode(errors="replace")

    def _turn(self, text: str, system: str | None, after: int | None = None) -> list[int]:
        """The tokens of a user's turn, with the words of the chat template. `after` is the last
        token of the reply that it follows, if it follows one."""
        data = text.encode()
        options = new("rlxvk_turn_options", follows=after is not None, last=after or 0)
        told = None if system is None else ffi.new("char[]", system.encode()) # outlives the call
        if told is not None:
            options.system = told
        return _tokens(lib.rlxvk_tokenizer_turn, self._tokenizer(), data, len(data), options)

    def _tokenizer(self) -> Any:
        with self._handle.lock:
            if self._words is None:
                out = ffi.new("rlxvk_tokenizer **")
                check(lib.rlxvk_tokenizer_open(self._handle.pointer, ffi.NULL, out))
                self._words = Handle(
                    out[0],
                    lib.rlxvk_tokenizer_destroy,
                    self._handle.lock,
                    needs=(self._handle,),
                )
            return self._words.pointer

    def _describe(self) -> Any:
        info = new("rlxvk_tokenizer_info")
        check(lib.rlxvk_tokenizer_describe(self._tokenizer(), info))
        return info

    # ---- Generating ----

    def generate(
        self,
        prompt: str,
        tokens: int | None = 128,
        *,
        chat: bool = False,
        system: str | None = None,
        **sampling: Unpack[Sampling],
    ) -> str:
        """Continues a prompt, and returns the continuation.

        tokens     at most so many are generated; None: until the text ends. It ends, too, if prompt
                   and continuation fill the `capacity`
        chat       the prompt is a user's turn: the model's own chat template is put around it
        system     what the model is told before that turn; None: what its template says
        sampling   temperature, top_k, top_p and seed, see Sampling

        The same prompt and sampling give the text that `rlxvk generate` prints.

        Raises RangeError if the prompt is empty or fills the capacity, or if the capacity is above
        the model's context; UnknownNameError or UnsupportedError if `chat` finds no template that
        rlxvk knows, or one without a place for `system`; AttrError for bad sampling; TooLargeError
        and OutOfDeviceMemoryError if the device has too little memory; and as encode.
        """
        with self._handle.lock:
            return "".join(self.stream(prompt, tokens, chat=chat, system=system, **sampling))

    def stream(
        self,
        prompt: str,
        tokens: int | None = 128,
        *,
        chat: bool = False,
        system: str | None = None,
        **sampling: Unpack[Sampling],
    ) -> Iterator[str]:
        """Like `generate`, but yields the continuation in pieces, as soon as each is known.

        Pieces are whole characters, and together they are what `generate` returns. To stop early,
        leave the loop. Raises OrderError if another text of this model has begun meanwhile.
        """
        if system is not None and not chat:
            raise errors.AttrError("`system` is a part of the chat template; give chat=True, too")
        one = _Text(self, _sampling(**sampling))
        if chat:
            return one.add(self._turn(prompt, system), tokens)
        data = prompt.encode()
        if lib.rlxvk_tokenizer_doubles_begin(self._tokenizer(), data, len(data)):
            warnings.warn(
                "the prompt spells the token that begins every text of this model, and it is put "
                "in front once more; leave it out of the prompt",
                stacklevel=2,
            )
        return one.add(self.encode(prompt), tokens)

    def chat(self, system: str | None = None, **sampling: Unpack[Sampling]) -> Chat:
        """Begins a conversation; see Chat. `system` is what the model is told first, and None what
        its template says."""
        return Chat(self, system, _sampling(**sampling))

    def _sequence(self, sampling: Any, seed: int) -> Any:
        """The library's language, which chooses tokens as wanted."""
        if self._language is None:
            options = new(
                "rlxvk_language_options",
                capacity=self.capacity,
                sampling=sampling,
                seed=seed,
                precision=self._precision,
                cache=self._cache,
            )
            tokenizer, context = self._tokenizer(), self._open_context()
            out = ffi.new("rlxvk_language **")
            check(lib.rlxvk_language_create(tokenizer, context.pointer, options, out))
            assert self._words is not None
            self._language = Handle(
                out[0],
                lib.rlxvk_language_destroy,
                self._handle.lock,
                needs=(self._words, context),
            )
        else:
            check(lib.rlxvk_language_set_sampling(self._language.pointer, sampling, seed))
        return self._language.pointer


def _take(user: Any, token: int, data: Any, length: int) -> bool:
    """Keeps a token that was generated, and its bytes, in the list that `user` is a handle of."""
    ffi.from_handle(user).append((token, bytes(ffi.buffer(data, length))))
    return True


_reader = ffi.callback("bool(void *, uint32_t, char *, size_t)", _take)


class _Text:
    """A text that grows: by tokens that are given, and by those that the model generates."""

    def __init__(self, model: LanguageModel, sampling: tuple[Any, int]) -> None:
        self._model = model
        self._sampling = sampling
        self._ids: list[int] = []
        self._round: object = None # the latest call of `_pieces`
        # The last token of the latest answer, before its end. None: there is no answer yet.
        self.last: int | None = None

    def add(self, ids: list[int], tokens: int | None) -> Iterator[str]:
        """Appends tokens, and generates at most `tokens` that follow them."""
        if tokens is not None and tokens < 1:
            raise errors.RangeError(f"tokens is {tokens}; it takes 1 or more, or None")
        return self._pieces(ids, tokens)

    def _pieces(self, ids: list[int], tokens: int | None) -> Iterator[str]:
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        for token, data in self._generate(ids, tokens):
            piece = decoder.decode(data)
            if piece:
                yield piece
        piece = decoder.decode(b"", final=True)
        if piece:
            yield piece

    def _generate(self, ids: list[int], tokens: int | None) -> Iterator[tuple[int, bytes]]:
        """The tokens of an answer, without its end, and their bytes."""
        model, mine = self._model, object()
        with model._handle.lock:
            language = model._sequence(*self._sampling)
            given = ids
            if model._text is not self:
                check(lib.rlxvk_language_rewind(language, 0))
                given = self._ids + ids
            token, data = self._step(language, given)
            self._ids += ids
            self._round, self.last = mine, lib.RLXVK_NO_TOKEN
        made = 1
        while not lib.rlxvk_tokenizer_is_end(model._tokenizer(), token):
            self._ids.append(token)
            self.last = token
            yield token, data
            if made == tokens:
                break
            with model._handle.lock:
                if model._text is not self or self._round is not mine:
                    raise errors.OrderError("another text of this model has begun, which ends this")
                if self._is_full(language):
                    break
                token, data = self._step(language, [])
            made += 1

    def _step(self, language: Any, ids: list[int]) -> tuple[int, bytes]:
        """Appends tokens, and returns the one that follows."""
        made: list[tuple[int, bytes]] = []
        user = ffi.new_handle(made)
        options = new("rlxvk_generate_options", tokens=1, reader=_reader, user=user)
        self._model._text = None # an interrupt or error may leave the caches in any state
        check(lib.rlxvk_language_generate(language, ids, len(ids), options))
        self._model._text = self
        return made[0]

    @staticmethod
    def _is_full(language: Any) -> bool:
        room = ffi.new("uint64_t *")
        check(lib.rlxvk_language_room(language, 0, room))
        return bool(room[0] == 0)


class Chat:
    """A conversation with a language model: `model.chat()` begins it.

    It keeps what was said, also in the model's caches, as long as no other text of the model
    begins. After that, the next turn runs the conversation once more. Then random draws begin anew,
    too. Threads: as LanguageModel, but only one at a time may use a Chat.
    """

    def __init__(
        self, model: LanguageModel, system: str | None, sampling: tuple[Any, int]
    ) -> None:
        self._model = model
        self._system = system
        self._text = _Text(model, sampling)

    def reply(self, message: str, tokens: int | None = None) -> str:
        """Returns the reply to a user's turn. It has at most `tokens` tokens; None: it goes on to
        its end, or until the conversation fills the model's `capacity`.

        Raises as `generate` with chat=True does; then the turn is not part of the conversation.
        """
        with self._model._handle.lock:
            return "".join(self.stream(message, tokens))

    def stream(self, message: str, tokens: int | None = None) -> Iterator[str]:
        """Like `reply`, but yields the reply in pieces, as LanguageModel.stream does. Replies that
        are not read to their end are cut there."""
        after = self._text.last
        ids = self._model._turn(message, self._system if after is None else None, after)
        return self._text.add(ids, tokens)
