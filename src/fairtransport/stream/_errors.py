"""Errors and warnings of a store and of the files beside it."""


class StoreError(ValueError):
    """A store, or a file that its stream writes, that cannot be used.

    It is in use by another process, belongs to another model, was changed by another program, or has no intact
    checkpoint.
    """


class StoreWarning(UserWarning):
    """Part of a store is damaged; the run continues from what is intact."""
