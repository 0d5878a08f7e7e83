"""What can go wrong, as exceptions."""


class Error(Exception):
    """What went wrong: a sentence that names the rule and the value, and a stable ``code``."""

    def __init__(self, sentence: str, code: str = "error") -> None:
        super().__init__(sentence)
        #: A stable name of what went wrong, for tools.
        self.code = code

    def __reduce__(self) -> tuple[type, tuple[str, str]]:
        return type(self), (str(self), self.code)


class InputError(Error, ValueError):
    """Bad input: a shape, a type, a layout, a name."""


class RefusedError(Error, RuntimeError):
    """A kernel that was refused: by the checker, by the compiler, in a capture."""


class DeviceError(Error, RuntimeError):
    """No driver, no GPU that can be used, or a fault of one."""


def refuse(sentence: str, code: str = "bad-problem") -> InputError:
    """The exception of bad input."""
    return InputError(sentence, code)
