"""Operators that make one number of many, and scans, which keep what came before."""
