"""Operators that reduce many numbers to one, and scans, which give all partial results."""
