"""Sorting, and searching in what is sorted."""
