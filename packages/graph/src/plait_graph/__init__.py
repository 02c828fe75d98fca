"""Graphs: functions that are recorded, saved, and run without Python."""
