"""Worker processes and threads of a `DataLoader`; loaded at the first iteration that wants them.

Design note 0011 says how they start, share, repeat and fail.
"""

__all__: list[str] = []
