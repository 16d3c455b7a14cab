"""What goes wrong while programs are built or a control plane is started.

::

    BedError            one sentence: object, cause, remedy
      Refused           nothing was done: bad input, or the state does not allow it
"""


class BedError(Exception):
    """Building or running failed; the message says what failed, why, and what to do."""


class Refused(BedError):
    """Refused before anything was done."""
