"""Functions in Python whose arguments or results a schema cannot express."""
