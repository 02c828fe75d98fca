"""Worker processes and threads of a `DataLoader`; imported at the first iteration with workers.

Design note 0011 describes how they start, share memory, repeat results and fail.
"""
