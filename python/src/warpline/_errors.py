"""The exceptions of the package."""


class Error(Exception):
    """Base class: a message that names the rule and the value, and a stable ``code``."""

    def __init__(self, message: str, code: str = "error") -> None:
        super().__init__(message)
        #: A stable name of the error, for tools.
        self.code = code

    def __reduce__(self) -> tuple[type, tuple[str, str]]:
        return type(self), (str(self), self.code)


class InputError(Error, ValueError):
    """Bad input: shape, element type, layout or name."""


class KernelError(Error, RuntimeError):
    """A kernel cannot be used: refuted or undecided by the checker, rejected by the compiler,
    or not launchable during a graph capture."""


class DeviceError(Error, RuntimeError):
    """No driver, no usable GPU, or a GPU fault."""


class FallbackWarning(UserWarning):
    """torch's own ops run a call, because no kernel supports it. ``WARPLINE_STRICT=1`` raises the
    error of the call instead."""


#: The code of a valid call that no kernel computes.
UNSUPPORTED = "unsupported"

#: The code of a valid call whose layout no kernel addresses.
UNSUPPORTED_LAYOUT = "unsupported-layout"


def input_error(message: str, code: str = "bad-problem") -> InputError:
    """Creates the exception for bad input."""
    return InputError(message, code)
