"""What can go wrong, one class for each thing that a caller can react to."""


class TrackerError(Exception):
    """Base of all errors of this package; never raised itself."""

    exit_status = 1


class UsageError(TrackerError):
    """The command line is wrong."""

    exit_status = 2


class ConfigError(TrackerError):
    """A configuration file has an unknown key or a value that is not allowed."""

    exit_status = 2


class InputError(TrackerError):
    """A snapshot, case or recording cannot be read or is not of its format."""

    exit_status = 2


class NotPermittedError(TrackerError):
    """The kernel refused: not permitted, or not supported."""

    exit_status = 3


class UnsupportedError(TrackerError):
    """This build or kernel lacks something that was asked for."""

    exit_status = 3


class LoadError(UnsupportedError):
    """A program cannot be loaded into the kernel."""

    def __init__(self, message: str, log: str = "") -> None:
        super().__init__(message)
        self.log = log
        """All that the compiler, libbpf and the verifier said."""


class FilesError(UnsupportedError):
    """This process, or host, may open too few files."""


class DumpError(TrackerError):
    """A dump failed; what was known stays."""

    exit_status = 4


class UnreachableError(TrackerError):
    """No daemon runs there, or it does not answer."""

    exit_status = 4


class PublishError(TrackerError):
    """A publisher could not write."""

    exit_status = 4
