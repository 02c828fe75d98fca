"""``python -m plait``: a text about this installation and this machine, for reports of faults."""

from plait._environment import describe

if __name__ == "__main__":
    print(describe())
